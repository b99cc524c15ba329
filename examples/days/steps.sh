# Functions of the three days: each step is printed with its seconds; the first that fails ends the day.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"

say() { printf '\n== %s\n' "$*"; }

step() {
    printf '$ %s\n' "$*"
    began=$(date +%s.%N)
    "$@"
    awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "  (%.1f s)\n", b - a }'
}
