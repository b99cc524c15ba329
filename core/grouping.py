"""Values by keys."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


def group_by_key(pairs: Iterable[tuple[KeyT, ValueT]]) -> defaultdict[KeyT, list[ValueT]]:
    """List the values of every key, both in the order of the pairs; other keys have none."""
    groups = defaultdict[KeyT, list[ValueT]](list)
    for key, value in pairs:
        groups[key].append(value)
    return groups
