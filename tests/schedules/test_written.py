"""Files of every kind of answer, as they were written before answers were dispatched on, in ``written/``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from cwb.core.answers import BandwidthPlan, BoundOnly, ChunkOrders
from cwb.core.equal_steps import StreamedSteps
from cwb.core.trees import TreeKind
from cwb.instances import load
from cwb.schedules import verdict_of
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.placement import read_placement, write_placement

WRITTEN = Path(__file__).parent / "written"
VERDICTS = json.loads((WRITTEN / "verdicts.json").read_text())


def content(path: Path) -> bytes | dict[str, bytes]:
    """Return the content of a file; archives are unpacked, since compression depends on the version of zlib."""
    if path.suffix == ".npz":
        with ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".npz"])
@pytest.mark.parametrize("name", VERDICTS)
def test_schedule_files_are_read_and_written_as_before(name, suffix, tmp_path):
    """Every form of every kind of schedule is read, has the verdict it had, and is written with the same content."""
    read = read_schedule(WRITTEN / f"{name}{suffix}")
    verdict = verdict_of(read.instance, read.answer, read.certificate)
    found = {"objective": verdict.objective, "bound": verdict.bound, "metrics": dict(verdict.metrics)}
    assert verdict.ok
    assert found == VERDICTS[name]
    for form in (".json", ".json.gz", ".npz"):
        write_schedule(tmp_path / f"s{form}", *read)
        assert content(tmp_path / f"s{form}") == content(WRITTEN / f"{name}{form}")


def test_ends_of_links_are_read_from_lists_in_archives():
    """An archive of an earlier layout, whose ends of links are lists and no columns, is the same schedule."""
    listed, columns = (read_schedule(WRITTEN / f"{name}.npz") for name in ("listed-ends", "tree-orbits"))
    assert listed.instance == columns.instance
    assert verdict_of(*listed[:3]) == verdict_of(*columns[:3])


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_placement_files_are_read_and_written_as_before(suffix, tmp_path):
    """A placement is read, and written with the same content."""
    old, new = WRITTEN / f"placement{suffix}", tmp_path / f"p{suffix}"
    instance, read = load("experts(gpus=4, slots=2, groups=2, nodes=2, loads=[4, 2, 1, 1])"), read_placement(old)
    write_placement(new, instance, read.answer, read.certificate, read.extra)
    assert content(new) == content(old)


ANSWERS = {
    "bandwidth-plan": BandwidthPlan((2.5e11,) * 4),
    "bound-only": BoundOnly(),
    "chunk-orders": ChunkOrders(((0, 1, 2, 3), (1, 2, 0, 3), (1, 2, 0, 3), (1, 2, 0, 3)), "scf"),
    "streamed-steps": StreamedSteps(
        "", TreeKind.BOTH, 2, 12, "319bee2489ee7e5a51148ff08b3121288869f0e6cc75c7e8ce4e9cb38a1fe179", lambda: iter(())
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_without_sends_are_written_as_before(name):
    """Files of answers without sends have not changed."""
    assert ANSWERS[name].to_json() == json.loads((WRITTEN / f"{name}.json").read_text())["answer"]
