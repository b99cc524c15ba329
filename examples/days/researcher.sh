#!/bin/bash
# The day of a network researcher: a network of one's own, training on it, failures, a page that plays a schedule.
# Usage: examples/days/researcher.sh [FOLDER]
. "$(dirname "$0")/steps.sh"

say "A network of one's own, as a list of links"
cat > links.csv <<'CSV'
source,target,bandwidth,latency
a,b,50 GB/s,1 us
b,c,50 GB/s,1 us
c,d,50 GB/s,1 us
d,a,50 GB/s,1 us
a,c,25 GB/s,2 us
CSV
step cwb import csv links.csv -o net.json --force

say "A collective on it, by several methods, against one bound, and a report that plays the fastest"
step cwb compare --models "ring,tacos,forestcoll,pccl" --instances net.json --collectives all_reduce --sizes "64 MiB" -o results --jobs 1 --schedules
step cwb table summary results -f text
step cwb report results -o report.html --force

say "An iteration of training, with the best of several methods for each collective"
step cwb train net.json -w llama-3-70b -g tp=2 -g dp=2 -m auto --bucket 25MiB --streams group --quiet

say "What a failure costs, also for an all-to-all"
step cwb resilience net.json --collective all_gather --kind link
step cwb resilience net.json --collective all_to_all --kind link

say "A page that plays the schedule, and the papers to cite"
step cwb solve net.json --model forestcoll --collective all_reduce --size "64 MiB" -o best.json --quiet --force
step cwb view best.json -o best.html --force
step cwb cite forestcoll tacos
