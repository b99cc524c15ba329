"""Write the table of what each solver offers into the page on solvers: ``python docs/solver_table.py``.

It is made of the adapters' own capabilities; ``tests/docs/test_pages.py`` compares.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from cwb import solvers
from cwb.core.solver import Capability

PAGE = Path(__file__).with_name("solvers.md")

#: What a capability is, behind its name.
WORDS = {
    Capability.LP: "linear programs",
    Capability.MIP: "integer variables",
    Capability.CONVEX_QP: "convex quadratic objectives",
    Capability.NONCONVEX_QP: "any quadratic objective",
    Capability.QUADRATIC_CONSTRAINTS: "quadratic constraints",
    Capability.MIP_START: "starts from given values",
    Capability.PROGRESS: "reports the state of the search",
    Capability.INTERRUPT: "stops on request",
    Capability.DUALS: "dual values",
    Capability.RESOLVE: (
        "a changed linear model is solved again (HiGHS continues from its last basis, the others start over)"
    ),
    Capability.POOL: (
        "the K best solutions of a mixed-integer linear program (Gurobi finds them in one search; for the others "
        "each is excluded before the next solve)"
    ),
}


def offer(capability: Capability, can: Capability) -> str:
    """Return the cell that shows a solver's support for a capability."""
    if capability not in can:
        return ""
    if capability is Capability.CONVEX_QP and Capability.MIP in can and Capability.NONCONVEX_QP not in can:
        return "yes, without integer variables"
    return "yes"


def table() -> str:
    """The table, in Markdown."""
    shown = [*map(solvers.get, solvers.names()), solvers.get("pyomo:NAME")]
    titles = [solver.title for solver in shown[:-1]] + ["`pyomo:NAME`"]
    lines = [f"| capability | {' | '.join(titles)} |", "|---" * (len(shown) + 1) + "|"]
    for capability, words in WORDS.items():
        cells = [f"`{str(capability.name).lower().replace('_', '-')}`: {words}"]
        cells += [offer(capability, solver.capabilities) for solver in shown]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def fill_page(page: str) -> str:
    """Return the page with the table as it is now."""
    return re.sub(r"^\| capability \|.*\n(\|.*\n)+", lambda _: table(), page, flags=re.MULTILINE)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
