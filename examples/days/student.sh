#!/bin/bash
# The day of a student of operations research: TE-CCL's program changed, compared over a suite, and in a LaTeX table.
# Usage: examples/days/student.sh [FOLDER]
. "$(dirname "$0")/steps.sh"
variants=$(cd "$here/.." && pwd)/teccl_variants.py

say "Three variants of TE-CCL's program, a few lines each"
grep -n "derive" "$variants"
step cwb formulate --plugin "$variants" teccl/milp "ring(4)" --collective all_to_all -O buffer=1
step cwb formulate --plugin "$variants" teccl/no-buffers "ring(4)" --collective all_to_all -O buffer=1 -o relaxed.lp --force

say "Optimum and time over a suite"
sed 's/"ring(4)", "ring(5)", "line(4)"/"ring(4)", "line(3)"/' "$here/../teccl_variants.toml" > suite.toml
step cwb compare suite.toml --plugin "$variants" -o results --jobs 1 --time-limit "60 s"

say "The table for the thesis"
step cwb table summary results -f latex -o table.tex --force
cat table.tex

say "A start of one's own: a schedule that TACOS found, for the program"
step cwb solve "ring(4)" --model tacos --collective all_gather --size "1 MiB" -o start.json --quiet --force
step cwb solve "ring(4)" --formulation teccl/milp --collective all_gather --size "1 MiB" --start start.json --quiet

say "Why is there no schedule in two epochs, if a rank holds one chunk for others?"
step cwb solve "line(3)" --formulation teccl/milp --collective all_to_all -O buffer=1 -O epochs=2 --explain --quiet || echo "  (exit status $?: no such schedule)"
