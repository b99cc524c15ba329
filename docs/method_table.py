"""Write the tables of methods into the page that helps to choose one: ``python docs/method_table.py``.

Kind, summary, networks and collectives are what the registry's methods say and take; where a method comes from, what it
proves and how far it has been run stands here. ``tests/docs/test_choosing.py`` compares.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cwb.core.method import Kind, Method
from cwb.harness import registry
from cwb.instances import load
from cwb.studies.support_matrix import support_of
from prose import lay_out_page

PAGE = Path(__file__).parent / "methods" / "index.md"

#: Where the tables stand in the page.
BEGIN, END = "<!-- tables: written by python docs/method_table.py -->\n", "<!-- end of the tables -->\n"

#: Where a method comes from.
REFERENCE, PAPER, OWN, TEXTBOOK, REBUILT = "reference", "paper", "own", "textbook", "reconstruction"


@dataclass(frozen=True)
class About:
    """Facts that a method's declaration does not have.

    Parameters
    ----------
    page : str
        Its section, relative to the page.
    origin : str
        Where it comes from.
    instance : str
        A large instance that it has answered.
    seconds : float, optional
        Its own time there on one or two cores; of one that takes no time, with writing the schedule and verifying it.
    proves : str
        What it proves of its answer; by default what its kind says.
    """

    page: str
    origin: str
    instance: str
    seconds: float | None = None
    proves: str = ""


#: Headings with their methods, in the order of the page; a sentence says what the methods of a heading are for.
GROUPS: dict[tuple[str, str], dict[str, About]] = {
    (
        "Dividing bandwidth",
        "The network is still to be built: how much bandwidth should every dimension have? "
        "Which topology to build is another question, of [`cwb find-topology`](topology-finder.md).",
    ): {
        "libra": About("libra.md", REFERENCE, "gpt-3-4d", 0.01),
        "libra-codesign": About("libra.md#parallelization-and-network-together-libra-codesign", PAPER, "msft-1t-hp-4d"),
        "libra-equal": About("libra.md#the-baseline-libra-equal", REFERENCE, "gpt-3-4d"),
    },
    (
        "Placing experts",
        "A mixture of experts has more slots on its GPUs than experts: which are replicated, and where is each?",
    ): {
        "expert-placement": About(
            "experts.md",
            OWN,
            "experts(gpus=32, slots=9, experts=256, layers=58, groups=8, nodes=4)",
            2,
            "the optimum where a bound is met",
        ),
    },
    (
        "Trees for large data",
        "Throughput counts, and latency does not: trees from every rank, or from one. "
        "Begin with `forestcoll`; the others are baselines, or fit one machine.",
    ): {
        "forestcoll": About("forestcoll.md", REFERENCE, "a100(boxes=1024)", 205),
        "forestcoll-allreduce": About("forestcoll.md#reduce-scatter-and-all-reduce", PAPER, "a100(boxes=2)", 1.4),
        "forestcoll-lp": About("forestcoll.md", PAPER, "torus(6,6)", 0.1),
        "blink": About("blink.md", REBUILT, "torus(8,8)", 0.1, "most trees from its root"),
        "blink-switch": About("blink.md", REBUILT, "a100(boxes=4)", 0.03, "most trees from its root"),
        "multitree": About("multitree.md", REBUILT, "torus(16,16)", 1.7),
        "switch-trees": About("switch-trees.md", OWN, "dgx_h100(boxes=128, nvls=true)", 9.3),
        "c-cube": About("ccube.md", REBUILT, "dgx1()", 0.003),
        "tto": About("tto.md", REBUILT, "mesh(10,10)", 0.1),
    },
    (
        "Schedules in time",
        "Every send has its time, so latency, small data and unequal links count. "
        "`teccl` proves its schedules up to some hundred ranks; `tacos` and `pccl` go on to thousands.",
    ): {
        "teccl": About("teccl-search.md", REFERENCE, "torus(8,8,16)", 4.6),
        "teccl-all-to-all": About("teccl.md#teccl-all-to-all", REFERENCE, "torus(6,6,6)", 15.7),
        "teccl-milp": About("teccl.md#teccl-milp", PAPER, "dgx1()", 0.06),
        "teccl-lp": About("teccl.md#teccl-lp", PAPER, "dgx1()", 0.4),
        "teccl-astar": About("teccl.md#teccl-astar", PAPER, "dgx1()", 0.2),
        "tacos": About("tacos.md", REFERENCE, "mesh(64,64)", 13.6, "the optimum where a bound is met"),
        "pccl": About("pccl.md", PAPER, "mesh(10,10,10)", 4.3, "the optimum where a bound is met"),
        "ten-ilp": About("ten.md", REBUILT, "torus(4,4)", 0.8),
        "sccl": About("sccl.md", REBUILT, "dgx1()", 0.04, "the fewest steps"),
        "hierarchical": About("hierarchical.md", OWN, "a100(boxes=32)", 3.0),
        "fast": About("fast.md", PAPER, "switch2d(8,8)", 9.7),
        "straggler": About(
            "straggler.md", PAPER, "switch(192)", 3.9, "the optimum of whole chunks where the bound is met"
        ),
        "taccl": About("taccl.md", REBUILT, "dgx1()", 6.3),
        "spff": About("spff.md", REBUILT, "torus(8,8)", 0.6),
    },
    (
        "Direct-connect networks",
        "Ranks are joined by links without switches: breadth-first broadcasts have the fewest steps, and on many "
        "networks the best bandwidth at once.",
    ): {
        "bfb": About("bfb.md#bfb", PAPER, "hypercube(10)", 0.02, "the best breadth-first broadcast"),
        "bfb-lp": About("bfb.md#bfb-lp", PAPER, "torus(16,16)", 3.7, "the best breadth-first broadcast"),
        "bfb-chunked": About("bfb.md#bfb-chunked", PAPER, "torus(8,8)", 0.7),
        "bfb-heterogeneous": About("bfb.md#bfb-heterogeneous", PAPER, "torus(8,8)", 1.9),
        "all-to-all-mcf": About("mcf.md", PAPER, "circulant(256,[11,12])", 2.5),
        "all-to-all-schedule": About("mcf.md#schedules", OWN, "torus(8,8)", 2.0),
    },
    (
        "Fabrics of dimensions",
        "The network is written in blocks, such as `RI(4)_FC(8)_SW(32)`, and chunks pass through one dimension after "
        "the other.",
    ): {
        "blueconnect": About("multirail.md#blueconnect", REBUILT, "RI(16)_FC(8)_SW(4)", 0.02),
        "themis": About("multirail.md#themis", REBUILT, "RI(16)_FC(8)_SW(4)", 0.03),
        "themis-lp": About("multirail.md#themis-lp", OWN, "RI(16)_FC(8)_SW(4)", 0.002),
    },
    (
        "Wide-area networks",
        "Sites with slow, unequal links, among which a few trees carry an all-reduce.",
    ): {
        "mtree": About("mtree.md", OWN, "gscale", 0.6),
        "mtree-repair": About("mtree-repair.md", OWN, "gscale"),
        "gost": About("mtree.md#interpretation-of-the-paper", PAPER, "gscale", 0.2),
        "topoadopt": About("wan-baselines.md", REBUILT, "gscale", 5.4),
        "blink-wan": About("wan-baselines.md", REBUILT, "gscale", 0.3),
        "single-tree": About("wan-baselines.md", TEXTBOOK, "gscale", 0.02, "the widest tree"),
        "wan-ring": About("wan-baselines.md", TEXTBOOK, "torus(4,4)", 0.01, "the widest ring, up to 20 sites"),
        "plink": About("wan-baselines.md", REBUILT, "gscale", 0.4),
        "psld": About("wan-baselines.md", REBUILT, "gscale", 0.004),
    },
    (
        "Textbook algorithms",
        "Baselines that libraries ship; `nccl` is what NCCL would take, `rccl` what RCCL would.",
    ): {
        "nccl": About("nccl.md", REFERENCE, "dgx_h100(boxes=64)", 2.8),
        "rccl": About("rccl.md", REFERENCE, "mi300x(boxes=16)"),
    }
    | {
        name: About(
            f"textbook.md#{name}",
            PAPER if name in ("bine", "torus-rings", "shifted-ring") else TEXTBOOK,
            instance,
            time,
        )
        for name, instance, time in (
            ("ring", "torus(16,16)", 0.5),
            ("direct", "torus(16,16)", 1.3),
            ("rhd", "torus(16,16)", 0.8),
            ("bruck", "torus(16,16)", 1.6),
            ("bine", "torus(16,16)", 0.8),
            ("dbt", "torus(16,16)", 0.3),
            ("knomial", "torus(16,16)", 0.2),
            ("torus-rings", "torus(16,16)", 1.4),
            ("shifted-ring", "circulant(n=256, offsets=[1,3])", 0.6),
            ("swing", "torus(16,16)", 1.0),
        )
    },
}

#: What a method proves of its answers, by its kind.
PROVES = {Kind.EXACT: "the optimum", Kind.RELAXATION: "a bound", Kind.HEURISTIC: ""}

HEADINGS = ("method", "problem", "takes", "kind, origin", "reached")


def tables() -> str:
    """The tables with their headings, in Markdown."""
    lines: list[str] = []
    for (heading, sentence), methods in GROUPS.items():
        lines += [f"### {heading}", "", lay_out_page(sentence), ""]
        lines += [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
        lines += [f"| {' | '.join(cells(registry.get(name), about))} |" for name, about in methods.items()]
        lines.append("")
    return "\n".join(lines)


def cells(method: Method, about: About) -> Iterator[str]:
    """The row of a method."""
    support = support_of(method)
    yield f"[`{method.name}`]({about.page})"
    yield method.summary
    yield f"{support.of_collectives()}; {' and '.join(support.networks)}"
    proves = about.proves or PROVES[method.kind]
    kind = f"{method.kind.value}: {proves}" if proves else method.kind.value
    yield f"{kind}; {'solver; ' if method.needs_solver else ''}{about.origin}"
    yield size_reached(about)


def size_reached(about: About) -> str:
    """Return the size of the example instance, its name, and the time."""
    time = "" if about.seconds is None else f", {about.seconds:g} s"
    return f"{load(about.instance).npus:,}: `{about.instance}`{time}"


def fill_page(page: str) -> str:
    """Return the page with the tables as they are now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
