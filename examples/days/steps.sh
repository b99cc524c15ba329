# Functions of the three days: each step is printed with its seconds; the first that fails ends the day.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"

say() { printf '\n== %s\n' "$*"; }

step() {
    local word status=0
    printf '$'
    for word; do
        case $word in *[!A-Za-z0-9_./:=,+-]*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    echo
    began=$(date +%s.%N)
    "$@" || status=$?
    awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "  (%.1f s)\n", b - a }'
    return "$status"
}
