"""``register_plans.py`` of ``cwb select``: beside stand-ins for MSCCL++'s classes, with the rules of its executor."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import cwb
import pytest
from cwb.core.errors import InputError
from cwb.exchange.mscclpp import register_plans

pytestmark = pytest.mark.slow  # most write the folder of a selection, with its plot

#: Names of the Python package of microsoft/mscclpp 1f5f065 that the file may use.
API = {"mscclpp.ext", "mscclpp.ext.AlgorithmCollectionBuilder", "mscclpp.Algorithm", "mscclpp.ExecutionPlan"}


class ExecutionPlan:
    """Stand-in for ``CppExecutionPlan(planPath, rank)``."""

    def __init__(self, planPath: str, rank: int) -> None:
        self.data = json.loads(Path(planPath).read_text())
        self.rank = rank

    def accepts(self, sent: int, received: int) -> bool:
        """``checkMessageSize`` of execution_plan.cc."""
        gpu, each = self.data["gpus"][self.rank], self.data["buffer_alignment"]
        size = received if self.data["collective"] == "allgather" else sent
        whole = [sent % (each * gpu["input_chunks"]), received % (each * gpu["output_chunks"])]
        return not any(whole) and self.data["min_message_size"] <= size <= self.data["max_message_size"]


@dataclass
class Algorithm:
    """Stand-in for ``mscclpp.Algorithm``, which takes its name and collective from the plan."""

    id: str
    execution_plan: ExecutionPlan


@dataclass
class Builder:
    """Stand-in for the builder of the collection, of which there is one."""

    algorithms: dict[str, dict[str, Algorithm]] = field(default_factory=dict)
    selector: Any = None

    def add_algorithm_builder(self, algorithm: Algorithm) -> None:
        plan = algorithm.execution_plan.data
        self.algorithms.setdefault(plan["collective"], {})[plan["name"]] = algorithm

    def set_algorithm_selector(self, selector: Any) -> None:
        self.selector = selector


@dataclass
class Request:
    """Stand-in for ``CppCollectiveRequest``."""

    collective: str
    message_size: int
    input_buffer: int
    output_buffer: int
    world_size: int = 4
    n_ranks_per_node: int = 4
    rank: int = 1
    hints: dict[str, list[int]] = field(default_factory=dict)


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    """Put the stand-ins in the place of the package."""
    made, package, ext = Builder(), ModuleType("mscclpp"), ModuleType("mscclpp.ext")
    package.__dict__.update(ExecutionPlan=ExecutionPlan, Algorithm=Algorithm, ext=ext)
    ext.__dict__.update(AlgorithmCollectionBuilder=lambda: made)
    monkeypatch.setitem(sys.modules, "mscclpp", package)
    monkeypatch.setitem(sys.modules, "mscclpp.ext", ext)
    return made


def written_module(folder: Path, collective: str, placement: str = "out", network: str = "ring(4)") -> Any:
    """Select plans, and import the file that was written beside them."""
    cwb.select(
        network,
        collective=collective,
        output=folder,
        models="ring, direct" if collective != "broadcast" else "knomial",
        chunks="1",
        dialect="mscclpp",
        placement=placement,
    )
    spec = importlib.util.spec_from_file_location(f"written_{folder.name}", folder / "register_plans.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_only_names_of_its_api_are_used() -> None:
    """Every name that the file takes from MSCCL++ is one of its Python package."""
    tree = ast.parse(Path(register_plans.__file__).read_text())
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {name for name in used if name.startswith("mscclpp.")} == API
    imported = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
    assert imported == {"json", "mscclpp", "mscclpp.ext"}


def test_a_plan_is_selected_where_the_executor_takes_it(builder: Builder, tmp_path: Path) -> None:
    """Of calls of all kinds of sizes, those that get a plan are the ones that its executor accepts, out of place."""
    module = written_module(tmp_path / "all", "all_reduce")
    assert module.register_plans(1) is builder
    plans = builder.algorithms["allreduce"]
    sizes = [2**10, 2**10 + 64, 2**20, 2**20 + 16, 2**30, 2**31, 512]
    for size in sizes:
        found = builder.selector(builder.algorithms, Request("allreduce", size, 2**40, 2**41))
        fitting = [one for one in plans.values() if one.execution_plan.accepts(size, size)]
        assert [found] == (fitting or [None])
    assert builder.selector(builder.algorithms, Request("allreduce", 2**20, 0, 0)) is None  # in place
    assert builder.selector(builder.algorithms, Request("allreduce", 2**20, 0, 2**19)) is None  # overlapping
    assert builder.selector(builder.algorithms, Request("allreduce", 2**20, 0, 2**30, world_size=8)) is None
    assert builder.selector(builder.algorithms, Request("allgather", 2**20, 0, 2**30)) is None


@pytest.mark.parametrize(("collective", "name"), [("all_gather", "allgather"), ("reduce_scatter", "reducescatter")])
def test_parts_in_place_are_found_at_their_rank(builder: Builder, tmp_path: Path, collective: str, name: str) -> None:
    """In place means that the smaller buffer is the rank's part of the larger one, as NCCL has it."""
    written_module(tmp_path / "in", collective, "in").register_plans(1)
    part, begin = 2**20, 2**40
    size, small = (part, begin + part) if name == "allgather" else (4 * part, begin + part)
    ends = (small, begin) if name == "allgather" else (begin, small)
    found = builder.selector(builder.algorithms, Request(name, size, *ends))
    assert found.execution_plan.accepts(*((part, 4 * part) if name == "allgather" else (4 * part, part)))
    assert builder.selector(builder.algorithms, Request(name, size, *ends, rank=2)) is None
    assert builder.selector(builder.algorithms, Request(name, size, 2**40, 2**41)) is None


def test_folders_are_registered_together(builder: Builder, tmp_path: Path) -> None:
    """One call registers several folders; a broadcast's plan is for the first rank, and none maps memory of other
    boxes."""
    written_module(tmp_path / "gather", "all_gather")
    written_module(tmp_path / "cast", "broadcast").register_plans(0, *sorted(tmp_path.glob("*/algorithms")))
    assert set(builder.algorithms) == {"allgather", "broadcast"}
    ends = 2**40, 2**41
    for name, rank in (("allgather", 0), ("broadcast", 0)):
        assert builder.selector(builder.algorithms, Request(name, 2**20, *ends, rank=rank)) is not None
        far = Request(name, 2**20, *ends, rank=rank, n_ranks_per_node=1)
        assert builder.selector(builder.algorithms, far) is None
    assert builder.selector(builder.algorithms, Request("broadcast", 2**20, *ends, rank=0, hints={"root": [0]}))
    assert builder.selector(builder.algorithms, Request("broadcast", 2**20, *ends, rank=0, hints={"root": [2]})) is None


def test_what_plans_cannot_be_is_refused(tmp_path: Path) -> None:
    """A plan is for calls in place or for others, and has no LL128."""
    for given in ({"placement": "both"}, {"proto": "LL128"}):
        with pytest.raises(InputError, match=f"^{next(iter(given))}:"):
            cwb.select("ring(4)", collective="all_reduce", dialect="mscclpp", output=tmp_path / "none", **given)
    assert not (tmp_path / "none").exists()
