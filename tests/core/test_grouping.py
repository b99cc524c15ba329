"""Values by keys."""

from cwb.core.grouping import group_by_key


def test_order():
    """Keys, and the values of each, are in the order of the pairs, and other keys have no values."""
    groups = group_by_key([("b", 3), ("a", 1), ("b", 2), ("b", 3)])
    assert list(groups.items()) == [("b", [3, 2, 3]), ("a", [1])]
    assert groups["c"] == []
