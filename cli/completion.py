"""Shell completion of the names of methods, instances, options, tables and all other lists.

Completers receive click's context, the parameter and the partial word, and return the matching words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_names(names: Callable[[], Iterable[str]], *, files: bool = False, listed: bool = False) -> Completer:
    """Return a completer for names.

    Parameters
    ----------
    names : callable
        Returns the names; called only when the user presses tab.
    files : bool
        True if the argument may also be a file.
    listed : bool
        True if the argument is a comma-separated list; its last name is completed.
    """

    def complete(context: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
        del context, param
        before, comma, last = word.rpartition(",") if listed else ("", "", word)
        found = [CompletionItem(f"{before}{comma}{name}") for name in names() if name.startswith(last)]
        return found + ([CompletionItem(word, type="file")] if files else [])

    return complete


def models() -> Sequence[str]:
    """List the names of all methods."""
    from ..harness import registry

    return registry.names()


def formulations() -> Sequence[str]:
    """List the names of all declared models."""
    from ..harness import registry

    return registry.formulation_names()


def solvers() -> Sequence[str]:
    """List the names of all solvers."""
    from ..harness import registry

    return registry.solver_names()


def collectives() -> Sequence[str]:
    """List the names of all collectives."""
    from ..core.collective import collective_names

    return collective_names()


def instances() -> Sequence[str]:
    """List the shipped instances and the generators of networks."""
    from ..instances import generators
    from ..instances.loader import shipped_instances

    return [*shipped_instances(), *generators.names()]


def suites() -> Sequence[str]:
    """List the names of all suites."""
    from ..harness.suite_file import shipped_suites

    return shipped_suites()


def tables() -> Sequence[str]:
    """List the names of all tables."""
    from ..reports.tables import TABLES

    return list(TABLES)


def plots() -> Sequence[str]:
    """List the names of all plots."""
    from ..reports.plots import PLOTS

    return list(PLOTS)


def everything() -> Sequence[str]:
    """List all arguments of ``cwb show``."""
    return [*models(), *formulations(), *instances()]


def method_options(context: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """Complete ``-O NAME=VALUE`` by the options of the method named before, and by values if they are few."""
    del param
    from ..harness import registry

    asked = context.params.get("model") or context.params.get("formulation")
    if asked not in (*models(), *formulations()):
        return []
    fields = registry.get(str(asked)).options.model_fields
    name, equals, value = word.partition("=")
    if not equals:
        return [
            CompletionItem(f"{field}=", help=described.description)
            for field, described in fields.items()
            if field.startswith(name)
        ]
    choices = _choices(fields[name].annotation) if name in fields else []
    return [CompletionItem(f"{name}={choice}") for choice in choices if choice.startswith(value)]


def _choices(kind: Any) -> list[str]:
    """Return the values of an enumerated type."""
    if kind is bool:
        return ["true", "false"]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(each.value) for each in kind]
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    return [choice for part in get_args(kind) for choice in _choices(part)]
