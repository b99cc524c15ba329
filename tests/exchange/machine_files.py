"""Texts and files of machines, made from the rules of their formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence

#: Pairs of a hybrid cube mesh by their number of NVLinks.
CUBE = {
    2: ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7)),
    1: ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6)),
}


def smi_topo(
    cell: Callable[[int, int], str],
    gpus: int,
    nics: Sequence[str] = (),
    near: Callable[[int, int], str] = lambda gpu, nic: "SYS",
    *,
    space: str = "\t",
) -> str:
    """Return the output of ``nvidia-smi topo -m`` for a box."""
    names = [f"GPU{i}" for i in range(gpus)]
    lines = [space + space.join([*names, *nics, "CPU Affinity", "NUMA Affinity"])]
    for i in range(gpus):
        row = [" X " if i == j else cell(i, j) for j in range(gpus)] + [near(i, k) for k in range(len(nics))]
        lines.append(space.join([names[i], *row, "0-31", "0"]))
    for k, nic in enumerate(nics):
        row = [near(i, k) for i in range(gpus)] + [" X " if k == m else "SYS" for m in range(len(nics))]
        lines.append(space.join([nic, *row]))
    return "\n".join([*lines, "", "Legend:", "", "  X    = Self", "  NV#  = bonded NVLinks", ""])


def cube_cell(i: int, j: int) -> str:
    """Cell of a hybrid cube mesh."""
    found = [count for count, pairs in CUBE.items() if (min(i, j), max(i, j)) in pairs]
    return f"NV{found[0]}" if found else "SYS"


def smi_links(gpus: int, links: int, rate: str, *, inactive: int = 0, product: str = "a GPU") -> str:
    """Return the output of ``nvidia-smi nvlink -s``."""
    rows = [
        *(f"\t Link {i}: {rate} GB/s" for i in range(links)),
        *(f"\t Link {links + i}: <inactive>" for i in range(inactive)),
    ]
    return "\n".join("\n".join([f"GPU {gpu}: {product} (UUID: GPU-{gpu})", *rows]) for gpu in range(gpus)) + "\n"


def rocm_topo(
    gpus: int, kind: Callable[[int, int], str], weight: Callable[[int, int], int], numa: Callable[[int], int]
) -> str:
    """Return the output of ``rocm-smi --showtopo``, with one hop for every pair."""

    def block(title: str, cell: Callable[[int, int], object]) -> str:
        head = " " * 7 + "".join(f"{f'GPU{j}':<13}" for j in range(gpus))
        rows = [f"{f'GPU{i}':<7}" + "".join(f"{cell(i, j)!s:<13}" for j in range(gpus)) for i in range(gpus)]
        return "\n".join([f"{f' {title} ':=^80}", head, *rows, ""])

    nodes = [f"GPU[{i}]\t\t: (Topology) Numa {what}: {numa(i)}" for i in range(gpus) for what in ("Node", "Affinity")]
    return "\n".join(
        [
            f"{' ROCm System Management Interface ':=^80}",
            block("Weight between two GPUs", lambda i, j: 0 if i == j else weight(i, j)),
            block("Hops between two GPUs", lambda i, j: int(i != j)),
            block("Link Type between two GPUs", lambda i, j: 0 if i == j else kind(i, j)),
            f"{' Numa Nodes ':=^80}",
            *nodes,
            f"{' End of ROCm SMI Log ':=^80}",
        ]
    )


def nccl_system(
    gpus: int,
    links: Callable[[int], str],
    *,
    about: str = 'sm="90"',
    speed: str = "32.0 GT/s PCIe",
    net: str = 'speed="400000"',
    version: int = 1,
) -> str:
    """Topology of a box: two CPUs, each with PCIe switches of a GPU and a NIC."""
    cpus = []
    for numa in (0, 1):
        switches = []
        for i in range(numa * gpus // 2, (numa + 1) * gpus // 2):
            device = f'link_speed="{speed}" link_width="16"'
            switches.append(
                f'<pci busid="0000:{i:02x}:00.0" class="0x060400" {device}>'
                f'<pci busid="{gpu_address(i)}" class="0x030200" {device}>'
                f'<gpu dev="{i}" rank="{i}" {about} gdr="1">{links(i)}</gpu></pci>'
                f'<pci busid="0000:{i:02x}:02.0" class="0x020700" {device}>'
                f'<nic><net name="mlx5_{i}" dev="{i}" {net} port="1"/></nic></pci></pci>'
            )
        cpu = f'<cpu numaid="{numa}" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">'
        cpus.append(cpu + "".join(switches) + "</cpu>")
    return f'<system version="{version}">' + "".join(cpus) + "</system>"


def gpu_address(index: int) -> str:
    """PCIe address of a GPU of :func:`nccl_system`."""
    return f"0000:{index:02x}:01.0"
