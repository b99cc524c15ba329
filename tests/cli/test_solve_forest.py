"""``cwb solve --json`` of forests: the record holds the trees and the cut that proves them."""

from __future__ import annotations

import json

from click.testing import CliRunner
from cwb.cli.main import cwb


def test_the_record_of_a_forest_holds_trees_and_cut():
    """The trees that are printed span all ranks from every root, and the certificate names the nodes of the cut."""
    arguments = ["solve", "--model", "forestcoll", "a100(boxes=1)", "--collective", "all_gather", "--json", "-q"]
    done = CliRunner().invoke(cwb, arguments)
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    forest = record["answer"]["forest"]
    assert record["status"] == "optimal"
    assert sorted(forest["root"]) == list(range(8))
    assert forest["edges"] == [7] * 8
    assert len(forest["path_links"]) == sum(forest["hops"])
    for tree, root in enumerate(forest["root"]):
        reached = {root}
        for edge in range(7 * tree, 7 * tree + 7):
            assert forest["parent"][edge] in reached
            reached.add(forest["child"][edge])
        assert reached == set(range(8))
    assert record["certificate"]["certificate"] == "cut"
    assert len(record["certificate"]["nodes"]) == 8


def test_a_forest_in_a_file_is_not_printed_too(tmp_path):
    """With -o the record names the file, and does not repeat the trees."""
    arguments = ["solve", "--model", "forestcoll", "a100(boxes=1)", "--collective", "all_gather", "--json", "-q"]
    done = CliRunner().invoke(cwb, [*arguments, "-o", str(tmp_path / "forest.json")])
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["answer"]) == {"path", "sha256"}
