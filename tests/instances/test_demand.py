"""The collective that the command line asks for."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.exchange.msccl.flow import flow_of
from cwb.harness import Request, run
from cwb.instances import load
from cwb.instances.demand import with_demand
from cwb.instances.edits import Edit, edit_instance
from cwb.instances.loader import from_data
from cwb.instances.schema import schema_text
from cwb.schedules.files import read_schedule, write_schedule
from jsonschema import Draft202012Validator


def test_a_collective_without_any_size_has_one_gibibyte():
    """If neither the instance nor the command line gives a size, it is 1 GiB."""
    asked = with_demand(load("ring(4)"), "all_gather", None, None)
    assert asked.demand == Demand(Collective.ALL_GATHER, Fraction(2**30))


def test_the_instance_keeps_what_the_command_line_leaves_open():
    """The size, chunks and ranks of the instance's own collective stay unless they are replaced."""
    demand = Demand(Collective.ALL_REDUCE, Fraction(1000), 3, (0, 2))
    known = load("ring(4)").with_changes(demand=demand)
    assert with_demand(known, None, None, None) is known
    assert with_demand(known, "all_gather", None, None).demand == Demand(
        Collective.ALL_GATHER, Fraction(1000), 3, (0, 2)
    )
    assert with_demand(known, None, "2 KiB", 5).demand == Demand(Collective.ALL_REDUCE, Fraction(2048), 5, (0, 2))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("gossip", None, None), "--collective: 'gossip' is unknown"),
        ((None, "1 GiB", None), "--collective: missing"),
        (("all_gather", "0", None), "--size"),
        (("all_gather", "large", None), "--size"),
    ],
)
def test_bad_input(arguments, problem):
    """A size alone names no collective, and wrong words are errors that name their option."""
    with pytest.raises(InputError) as caught:
        with_demand(load("ring(4)"), *arguments)
    assert problem in str(caught.value)


def test_a_matrix_of_bytes_becomes_messages(tmp_path):
    """Row r of the file is what rank r sends to each rank, as bytes or sizes; a rank's own part and zeros are left
    out."""
    path = tmp_path / "demand.csv"
    path.write_text("9,1 KiB,0\n5,0,0\n0,7,0\n")
    asked = with_demand(load("ring(3)"), f"all_to_all_v('{path}')", None, 2)
    found = [(demand.ranks, demand.size_bytes, demand.chunks) for demand in asked.demands]
    assert found == [((0, 1), 1024, 2), ((1, 0), 5, 2), ((2, 1), 7, 2)]
    assert {demand.collective for demand in asked.demands} == {Collective.POINT_TO_POINT}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("0,1\n1,0\n", "2 rows; expected 3, one for each rank"),
        ("0,1,2\n1,0\n1,2,0\n", "[1]: 2 sizes; expected 3, one for each rank"),
        ("0,1,2\n1,0,nan\n1,2,0\n", "[1][2]: 'nan' is not a quantity"),
        ("0,1,2\n1,0,-5\n1,2,0\n", "[1][2]: '-5' has no unit"),
        ("9" * 200_000, "not a CSV file: field larger than"),
        ("9,0,0\n0,9,0\n0,0,9\n", "no rank has data for another one"),
    ],
)
def test_bad_matrices(rows, problem, tmp_path):
    """An error in a matrix is reported with its row and column."""
    path = tmp_path / "demand.csv"
    path.write_text(rows)
    with pytest.raises(InputError) as caught:
        with_demand(load("ring(3)"), f"all_to_all_v('{path}')", None, None)
    assert problem in str(caught.value)


def test_a_generated_matrix_is_skewed_and_repeatable():
    """Every rank sends the size in all, its own part included, most to one rank; the seed decides to which."""
    one, again, other = (
        with_demand(load("ring(4)"), f"all_to_all_v(skew=2, seed={seed})", "1 MB", None).demands for seed in (1, 1, 2)
    )
    assert one == again != other
    alike = with_demand(load("ring(4)"), "all_to_all_v(skew=0)", "1 MB", None).demands
    assert {demand.size_bytes for demand in alike} == {250_000}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("all_to_all_v", "expected all_to_all_v(FILE.csv)"),
        ("gather_v", "expected gather_v(FILE.csv)"),
        ("all_to_all_v(3, 4)", "expected all_to_all_v(FILE.csv)"),
        ("all_to_all_v(skew=-1)", "from 0 to 10"),
        ("all_to_all_v(seed=0.5)", "seed"),
        ("all_to_all_v(shape=1)", "unknown 'shape'"),
        ("all_to_all_v('no.csv')", "no.csv"),
    ],
)
def test_bad_messages(text, problem):
    """An error in the expression or its file is reported."""
    with pytest.raises(InputError) as caught:
        with_demand(load("ring(3)"), text, None, None)
    assert problem in str(caught.value)


ROW = ["1 MB", "0 B", "3 MB", "2 MB"]
MATRIX = [["9 MB", "1 MB", "0 B", "2 MB"], ["0 B"] * 4, ["3 MB", "0 B", "0 B", "0 B"], ["0 B", "5 B", "0 B", "0 B"]]

#: Kind to sizes, and to the group and size of every message.
ASKED = {
    "all_gather_v": (ROW, {(0, 1, 2, 3): 10**6, (2, 0, 1, 3): 3 * 10**6, (3, 0, 1, 2): 2 * 10**6}),
    "gather_v": (ROW, {(2, 0): 3 * 10**6, (3, 0): 2 * 10**6}),
    "scatter_v": (ROW, {(0, 2): 3 * 10**6, (0, 3): 2 * 10**6}),
    "all_to_all_v": (MATRIX, {(0, 1): 10**6, (0, 3): 2 * 10**6, (2, 0): 3 * 10**6, (3, 1): 5}),
}


def asking(network: str = "ring(4)", **collective: object) -> Instance:
    """Load an instance file with a collective."""
    return from_data({"network": network, "collective": collective}, "x")


@pytest.mark.parametrize("kind", ASKED)
def test_every_part_that_is_not_empty_is_a_message(kind: str) -> None:
    """Parts go from or to the first rank, or to all others, with their size; empty and own ones go nowhere."""
    sizes, expected = ASKED[kind]
    asked = asking(kind=kind, sizes=sizes, chunks=2)
    assert {demand.ranks: demand.size_bytes for demand in asked.demands} == expected
    assert {demand.chunks for demand in asked.demands} == {2}
    (whole,) = asked.collectives
    assert (whole.collective.name, whole.size_bytes, asked.collective_name) == (kind, sum(expected.values()), kind)


def test_sizes_are_in_the_order_of_the_group() -> None:
    """The first of the ranks is the root, and has the first size."""
    asked = asking(kind="gather_v", sizes=["1 B", "2 B", "3 B"], ranks=[2, 0, 3])
    assert [(demand.ranks, demand.size_bytes) for demand in asked.demands] == [((0, 2), 2), ((3, 2), 3)]
    assert asked.collectives[0].ranks == (0, 2, 3)


def test_the_name_changes_no_digest() -> None:
    """The digest is that of the messages, as the command line has always made them of an all_to_all_v."""
    asked = asking(kind="all_to_all_v", sizes=MATRIX)
    plain = [Demand(each.collective, each.size_bytes, ranks=each.ranks) for each in asked.demands]
    unnamed = asked.with_changes(demand=plain[0], also=tuple(plain[1:]))
    assert asked.sha256 == unnamed.sha256 == "1001d843121e739602d963b424a38f9dd04e1376db856c77026f5c1090275b6a"
    assert unnamed.collective_name == "point_to_point"


@pytest.mark.parametrize("kind", ASKED)
def test_a_schedule_is_verified_and_keeps_the_name(kind: str, tmp_path: Path) -> None:
    """The record names the collective without busbw, which nccl-tests does not define; its file has instance and
    name."""
    asked = asking(kind=kind, sizes=ASKED[kind][0])
    done = run(asked, Request("spff"))
    assert (done.record.collective, done.record.verified, done.record.size_bytes) == (kind, True, None)
    assert done.record.metrics["busbw_GBps"] is None
    write_schedule(tmp_path / "s.json", asked, done.answer)
    again = read_schedule(tmp_path / "s.json").instance
    assert (again.sha256, again.collectives) == (asked.sha256, asked.collectives)
    assert again.collective_name == kind
    write_schedule(tmp_path / "again.json", again, done.answer)
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "s.json").read_bytes()


@pytest.mark.parametrize("model", ["bfb", "tacos", "teccl-milp", "rhd"])
def test_other_methods_refuse_in_one_line(model: str) -> None:
    """A method of one collective, or of chunks of one size, says that this one is posed as messages."""
    record = run(asking(kind="all_gather_v", sizes=ROW), Request(model)).record
    assert record.status == "unsupported"
    assert record.message.endswith("(all_gather_v is posed as messages of different sizes)")
    assert record.message.count("\n") == 0


WRONG = [
    ({"sizes": ROW[:3]}, "collective.sizes: 3 sizes; expected 4, one for each rank"),
    ({"sizes": ROW, "ranks": [0, 1]}, "collective.sizes: 4 sizes; expected 2, one for each rank"),
    ({"sizes": ROW[:1], "ranks": [0]}, "collective.sizes: a collective needs at least two ranks"),
    ({"sizes": [*ROW[:3], "-1 B"]}, "collective.sizes[3]: '-1 B' must not be negative"),
    ({"sizes": [*ROW[:3], "inf B"]}, "collective.sizes[3]: 'inf B' is not a quantity"),
    ({"sizes": [*ROW[:3], 7]}, "collective.sizes[3]: 7 has no unit"),
    ({"sizes": ["0 B"] * 4}, "collective.sizes: no rank has data for another one"),
    ({"sizes": MATRIX}, "collective.sizes[0]: expected one size"),
    ({"kind": "all_to_all_v", "sizes": MATRIX[:3]}, "collective.sizes: 3 rows; expected 4, one for each rank"),
    ({"kind": "all_to_all_v", "sizes": [*MATRIX[:3], ROW[:2]]}, "collective.sizes[3]: 2 sizes; expected 4"),
    ({"kind": "all_to_all_v", "sizes": ROW}, "collective.sizes[0]: expected a list of sizes, one for each rank"),
    ({"size": "1 MB"}, "collective.kind: all_gather_v has a size per rank; expected sizes beside it"),
    ({"kind": "all_gather", "sizes": ROW}, "collective.kind: all_gather has equal parts; expected size"),
    ({"size": "1 MB", "sizes": ROW}, "collective.size: unknown field"),
]


@pytest.mark.parametrize(("changes", "problem"), WRONG)
def test_bad_sizes_are_one_line(changes: dict[str, object], problem: str) -> None:
    """Number, sign, unit and shape of the sizes are checked, with their place."""
    with pytest.raises(InputError) as caught:
        asking(**{"kind": "all_gather_v", **changes})
    assert str(caught.value).startswith(problem)
    assert "\n" not in str(caught.value)


def test_the_published_schema_has_sizes() -> None:
    """An editor accepts sizes of these collectives alone, and a size of all others."""
    accepts = Draft202012Validator(json.loads(schema_text("instance"))).is_valid
    for collective, right in (
        ({"kind": "all_gather_v", "sizes": ROW}, True),
        ({"kind": "all_to_all_v", "sizes": MATRIX}, True),
        ({"kind": "all_gather", "sizes": ROW}, False),
        ({"kind": "all_gather_v", "size": "1 MB"}, False),
    ):
        assert accepts({"network": "ring(4)", "collective": collective}) == right


def test_exports_name_what_they_cannot_write() -> None:
    """Messages between pairs are one program; the broadcasts of an all_gather_v are rejected by its name."""
    flow = flow_of(asked := asking(kind="gather_v", sizes=ROW), run(asked, Request("spff")).answer)
    assert (flow.kind, len(flow.chunks)) == (None, 2)
    asked = asking(kind="all_gather_v", sizes=ROW)
    with pytest.raises(InputError, match="all_gather_v is 3 broadcasts at once"):
        flow_of(asked, run(asked, Request("spff")).answer)


def test_sizes_of_a_file_and_generated_ones(tmp_path: Path) -> None:
    """A CSV file has the sizes in any rows; generated ones share the size in all, falling by a power."""
    (tmp_path / "sizes.csv").write_text("10,1 kB\n0,30\n")
    asked = with_demand(load("ring(4)"), f"gather_v('{tmp_path / 'sizes.csv'}')", None, 3)
    assert [(each.ranks, each.size_bytes, each.chunks) for each in asked.demands] == [
        ((1, 0), 1000, 3),
        ((3, 0), 30, 3),
    ]
    made = with_demand(load("ring(4)"), "all_gather_v(skew=1)", "25 B", None).demands
    assert sorted(each.size_bytes for each in made) == [3, 4, 6, 12]


@pytest.mark.parametrize("name", ["all_reduce", "all_gather"])
def test_a_message_of_another_collective_is_rejected(name: str, tmp_path: Path) -> None:
    """A file whose messages claim to be part of a collective that has no such messages is wrong."""
    asked = asking(kind="gather_v", sizes=ROW)
    write_schedule(tmp_path / "s.json", asked, run(asked, Request("spff")).answer)
    forged = (tmp_path / "s.json").read_text().replace('"gather_v"', f'"{name}"')
    (tmp_path / "s.json").write_text(forged)
    with pytest.raises(InputError, match=f"part_of: point_to_point is no message of {name}"):
        read_schedule(tmp_path / "s.json")


def test_the_command_line_replaces_chunks_alone() -> None:
    """Sizes of its own are not replaced by a size or another collective; chunks are."""
    asked = asking(kind="all_gather_v", sizes=ROW)
    assert {each.chunks for each in with_demand(asked, None, None, 5).demands} == {5}
    for arguments, option in (((None, "1 MB", None), "--size"), (("all_gather", None, None), "--collective")):
        with pytest.raises(InputError, match=f"{option}: the all_gather_v of the instance has sizes of its own"):
            with_demand(asked, *arguments)


def test_a_rank_is_lost_with_its_messages() -> None:
    """The others keep theirs; without its root a gather has no data."""
    left = edit_instance(asking(kind="all_gather_v", sizes=ROW), [Edit("--without-rank", "2")])
    assert [(each.ranks, each.size_bytes) for each in left.demands] == [((0, 1, 2), 10**6), ((2, 0, 1), 2 * 10**6)]
    with pytest.raises(InputError, match="all data of the collective is of rank 0"):
        edit_instance(asking(kind="gather_v", sizes=ROW), [Edit("--without-rank", "0")])


def test_two_collectives_keep_their_names() -> None:
    """Beside another collective each is itself, and the messages of one are summed."""
    data = {
        "network": "ring(4)",
        "collective": {"kind": "all_gather", "size": "4 B"},
        "also": [{"kind": "scatter_v", "sizes": ROW}],
    }
    wholes = from_data(data, "x").collectives
    assert [(each.collective.name, each.size_bytes) for each in wholes] == [
        ("all_gather", Fraction(4)),
        ("scatter_v", Fraction(5 * 10**6)),
    ]
