"""Indexed variables whose objects Pyomo creates when one of them is first accessed (docs/constraints.md)."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from operator import is_
from typing import Any

from pyomo.common.gc_manager import PauseGC
from pyomo.core.base.var import IndexedVar, Var

from .errors import InputError


class Variables(IndexedVar):  # type: ignore[misc]
    """Indexed ``pyo.Var`` that waits with its objects until one is accessed, and is an ordinary one from then on.

    It waits only if all variables have one domain, constant bounds and no initial value, which are those of
    ``pattern``. Its index sets must not change in the meantime. ``variable_list`` has all variables once they exist.
    """

    def construct(self, data: Any = None) -> None:
        """Wait, or create all variables that are not alike."""
        for each in self._anonymous_sets or ():
            each.construct()
        index, rules = self.index_set(), (self._rule_domain, self._rule_bounds)
        is_alike = self._dense and self._rule_init is None and all(rule is None or rule.constant() for rule in rules)
        if not is_alike or not index.isfinite() or not len(index):
            self.__class__ = IndexedVar
            self.construct(data)
            return
        self._constructed, self.variable_list, self._size = True, list[Any](), len(index)
        self.pattern = self._getitem_when_not_present(next(iter(index)))
        del self._data

    @cached_property
    def _data(self) -> dict[Any, Any]:
        if len(self.index_set()) != self._size:
            raise InputError(f"an index set of {self.name} has changed since its declaration by Variables: use pyo.Var")
        self.__class__ = IndexedVar
        self._constructed, self._data = False, {}
        with PauseGC():
            self.construct()
        self.variable_list += self._data.values()
        return self._data

    def _create_objects_for_deepcopy(self, *arguments: Any) -> Any:
        _ = self._data  # ends the waiting, since the copies exist at once
        return IndexedVar._create_objects_for_deepcopy(self, *arguments)

    def __len__(self) -> int:
        return len(self.index_set())

    def __contains__(self, index: Any) -> bool:
        return index in self.index_set()


def is_lazy(component: Any) -> bool:
    """Check if a component is :class:`Variables` whose objects do not exist yet."""
    return component.__class__ is Variables


@contextmanager
def create_singly(m: Any) -> Iterator[None]:
    """Let Pyomo create the variables that are accessed in this block one by one; the others are still created later."""
    waiting = [component for component in m.component_objects(Var) if is_lazy(component)]
    for component in waiting:
        component._data = {}
    try:
        yield
    finally:
        for component in waiting:
            del component._data


def list_variables(component: Any) -> list[Any]:
    """Return ``list(component.values())``, or ``variable_list`` if it is the same or the component is still lazy."""
    variables = getattr(component, "variable_list", [])
    if is_lazy(component) or (len(variables) == len(component) and all(map(is_, variables, component._data.values()))):
        return variables
    return list(component.values())
