"""What a shell offers at the tab key: names of methods, instances, options, tables and all else that has a list.

Functions take what click gives, the context, the parameter and the word so far, and give the words that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def of(names: Callable[[], Iterable[str]], *, files: bool = False, listed: bool = False) -> Completer:
    """Complete by names.

    Parameters
    ----------
    names : callable
        Gives them; called at the tab key alone.
    files : bool
        Whether a file may stand there too.
    listed : bool
        Whether several names stand between commas, of which the last is completed.
    """

    def complete(context: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
        del context, param
        before, comma, last = word.rpartition(",") if listed else ("", "", word)
        found = [CompletionItem(f"{before}{comma}{name}") for name in names() if name.startswith(last)]
        return found + ([CompletionItem(word, type="file")] if files else [])

    return complete


def models() -> Sequence[str]:
    """Methods."""
    from ..harness import registry

    return registry.names()


def formulations() -> Sequence[str]:
    """Declared models."""
    from ..harness import registry

    return registry.formulation_names()


def solvers() -> Sequence[str]:
    """Solvers."""
    from ..harness import registry

    return registry.solver_names()


def collectives() -> Sequence[str]:
    """Collectives."""
    from ..core.collective import CollectiveKind

    return [kind.value for kind in CollectiveKind]


def instances() -> Sequence[str]:
    """Shipped instances, and generators of networks."""
    from ..instances import generators
    from ..instances.loader import shipped

    return [*shipped(), *generators.names()]


def suites() -> Sequence[str]:
    """Suites."""
    from ..harness.suite_file import shipped_suites

    return shipped_suites()


def tables() -> Sequence[str]:
    """Tables."""
    from ..reports.tables import TABLES

    return list(TABLES)


def plots() -> Sequence[str]:
    """Plots."""
    from ..reports.plots import PLOTS

    return list(PLOTS)


def everything() -> Sequence[str]:
    """All that ``cwb show`` shows."""
    return [*models(), *formulations(), *instances()]


def method_options(context: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """Complete ``-O NAME=VALUE`` by the options of the method that is named before, and their values where they are few."""
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
    """Values of a type that names them."""
    if kind is bool:
        return ["true", "false"]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(each.value) for each in kind]
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    return [choice for part in get_args(kind) for choice in _choices(part)]
