#!/bin/bash
# The day of an infrastructure engineer: from what nvidia-smi prints to a schedule that ran with real data.
# Usage: examples/days/engineer.sh [FOLDER]
. "$(dirname "$0")/steps.sh"

say "Two boxes of four H100, as 'nvidia-smi topo -m' shows one"
cat > topo.txt <<'TOPO'
     GPU0 GPU1 GPU2 GPU3
GPU0 X    NV18 NV18 NV18
GPU1 NV18 X    NV18 NV18
GPU2 NV18 NV18 X    NV18
GPU3 NV18 NV18 NV18 X
TOPO
step cwb import nvidia-smi topo.txt --generation h100 --boxes 2 --nic "4 x 400 Gb/s" --rails -o machine.json --force

say "What to expect of it, and what is possible"
step cwb advise machine.json --collective all_reduce --sizes "1 MiB,256 MiB" -o advice.html --quiet --force

say "The fastest of three methods for every size, as files for the runtimes"
step cwb select machine.json --collective all_reduce --min-bytes "64 KiB" --max-bytes "64 MiB" \
    --models "ring, nccl algorithm=tree, hierarchical" --chunks 1 -o chosen

say "Any schedule by hand, here a plain ring: solved, exported, and checked as a file that came from elsewhere"
step cwb solve machine.json --model ring --collective all_reduce --size "1 MiB" -o ring.json --quiet --force
step cwb export msccl ring.json -o ring.xml --force
step cwb check ring.xml --topology machine.json

say "Run with real data by a process for each rank"
step cwb run ring.json --quiet

say "An all-to-all of experts over the rails of the imported machine"
step cwb solve machine.json --model fast --collective "all_to_all_v(skew=1.2, seed=1)" --size "64 MiB" --chunks 4 --quiet
