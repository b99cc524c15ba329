"""Programs as the text that the runtimes' own readers take.

No declaration, an element on each line, its attributes on that line, indented with spaces, double quotes.
"""

from __future__ import annotations

from collections.abc import Iterator

from .program import Algorithm, Block


def xml_text(algorithm: Algorithm) -> Iterator[str]:
    """Write a program, line by line; what is None is left out."""
    head: dict[str, object] = {
        "name": algorithm.name,
        "proto": algorithm.proto,
        "nchannels": algorithm.nchannels,
        "nchunksperloop": algorithm.nchunksperloop,
        "ngpus": algorithm.ngpus,
        "coll": algorithm.coll,
        "inplace": algorithm.inplace,
        "outofplace": algorithm.outofplace,
        "minBytes": algorithm.min_bytes,
        "maxBytes": algorithm.max_bytes,
        "nthreads": algorithm.nthreads,
    }
    yield "<algo " + " ".join(f'{name}="{value}"' for name, value in head.items() if value is not None) + ">\n"
    for gpu in algorithm.gpus:
        sizes = f'i_chunks="{gpu.i_chunks}" o_chunks="{gpu.o_chunks}" s_chunks="{gpu.s_chunks}"'
        yield f'  <gpu id="{gpu.id}" {sizes}>\n'
        for block in gpu.blocks:
            yield from _block(block)
        yield "  </gpu>\n"
    yield "</algo>\n"


def _block(block: Block) -> Iterator[str]:
    yield f'    <tb id="{block.id}" send="{block.send}" recv="{block.recv}" chan="{block.chan}">\n'
    for s, kind, srcbuf, srcoff, dstbuf, dstoff, cnt, depid, deps, hasdep in block.steps:
        yield (
            f'      <step s="{s}" type="{kind}" srcbuf="{srcbuf}" srcoff="{srcoff}" dstbuf="{dstbuf}" '
            f'dstoff="{dstoff}" cnt="{cnt}" depid="{depid}" deps="{deps}" hasdep="{hasdep}"/>\n'
        )
    yield "    </tb>\n"
