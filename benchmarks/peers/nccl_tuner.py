"""NVIDIA's example tuner plugin, with the file that ``cwb select`` writes for it.

    python benchmarks/peers/nccl_tuner.py --plugin libnccl-tuner-example.so --conf chosen/nccl_tuner.conf --boxes 2

The plugin is built by its own Makefile in NVIDIA/nccl; it needs no GPU. It is asked as NCCL asks it, at both ends of
every line of the file, in the middle and beside the ends. The algorithm and protocol of the line must be the cheapest
of the table, and the number of channels NCCL's own (0). What differs is printed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path

#: NCCL's order of collectives, algorithms and protocols (src/include/nccl_common.h).
CALLS = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")
DEAR = 1e6  # microseconds of every algorithm before the plugin is asked

INIT = ctypes.CFUNCTYPE(c_int, POINTER(c_void_p), c_uint64, c_size_t, c_size_t, c_void_p, c_void_p, c_void_p)
ASK = ctypes.CFUNCTYPE(
    c_int, c_void_p, c_int, c_size_t, c_int, POINTER(c_float), c_int, c_int, c_int, POINTER(c_int)
)  # fmt: skip


class Tuner(ctypes.Structure):
    """``ncclTuner_v5_t`` up to ``getCollInfo``."""

    _fields_ = (("name", c_char_p), ("init", INIT), ("ask", ASK))


class Plugin:
    """The plugin, with its file loaded."""

    def __init__(self, library: Path, conf: Path, ranks: int, boxes: int) -> None:
        os.environ["NCCL_TUNER_CONFIG_FILE"] = str(conf.absolute())
        self.tuner = Tuner.in_dll(ctypes.CDLL(str(library.absolute())), "ncclTunerPlugin_v5")
        self.context = c_void_p()
        if self.tuner.init(byref(self.context), 0, ranks, boxes, None, None, None):
            raise SystemExit(f"{library}: init failed")

    def ask(self, call: str, size: int) -> tuple[list[tuple[str, str]], int]:
        """Return the cheapest algorithms with protocols for a call, none if all cost the same, and the channels."""
        count = len(ALGORITHMS) * len(PROTOCOLS)
        table, channels = (c_float * count)(*[DEAR] * count), c_int(0)
        shape = len(ALGORITHMS), len(PROTOCOLS)
        if self.tuner.ask(self.context, CALLS.index(call), size, 1, table, *shape, 0, byref(channels)):
            raise SystemExit(f"getCollInfo failed for {call} of {size} bytes")
        cheap = [divmod(at, len(PROTOCOLS)) for at, cost in enumerate(table) if cost < DEAR]
        return [(ALGORITHMS[algorithm], PROTOCOLS[protocol]) for algorithm, protocol in cheap], channels.value


def main(argv: Sequence[str] | None = None) -> int:
    """Compare the answers of the plugin with its file; the exit status is 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", type=Path, required=True)
    parser.add_argument("--conf", type=Path, required=True)
    parser.add_argument("--boxes", type=int, default=1)
    given = parser.parse_args(argv)
    lines = [line.split(",") for line in given.conf.read_text().splitlines() if not line.startswith("#")]
    plugin = Plugin(given.plugin, given.conf, int(lines[0][7]), given.boxes)
    asked = wrong = 0
    for call, first, last, algorithm, protocol, *_ in lines:
        for size in sorted({int(first), int(first) + 1, (int(first) + int(last)) // 2, int(last) - 1, int(last)}):
            found, asked = plugin.ask(call, size), asked + 1
            if found != ([(algorithm, protocol)], 0):
                wrong += 1
                print(f"{call} of {size} bytes: {found}; expected {algorithm} with {protocol}, channels 0")
    beyond = plugin.ask(lines[0][0], int(lines[-1][2]) + 1)
    print(f"{len(lines)} lines, {asked} sizes, {wrong} of them different; beyond the file: {beyond}")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
