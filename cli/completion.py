"""Shell completion of the names of methods, instances, options, tables and all other lists.

Completers receive click's context, the parameter and the partial word, and return the matching words.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete(kind: str, *, files: bool = False, is_list: bool = False) -> Completer:
    """Return a completer for the names of a kind, see :func:`names`.

    Parameters
    ----------
    files : bool
        Whether the argument may also be a file.
    is_list : bool
        Whether the argument is a comma-separated list; its last name is completed.
    """

    def completer(context: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
        del context, param
        before, comma, last = word.rpartition(",") if is_list else ("", "", word)
        items = [CompletionItem(f"{before}{comma}{name}") for name in names(kind) if name.startswith(last)]
        return items + ([CompletionItem(word, type="file")] if files else [])

    return completer


def names(kind: str) -> Iterable[str]:
    """List the names of a kind; ``everything`` are the arguments of ``cwb show``."""
    from ..core.collective import collective_names
    from ..harness import registry, suite_file
    from ..instances import generators
    from ..instances.loader import shipped_instances
    from ..reports.plots import PLOTS
    from ..reports.tables import TABLES

    listings: dict[str, Callable[[], Iterable[str]]] = {
        "models": registry.names,
        "formulations": registry.formulation_names,
        "solvers": registry.solver_names,
        "collectives": collective_names,
        "instances": lambda: [*shipped_instances(), *generators.names()],
        "suites": suite_file.shipped_suites,
        "tables": lambda: TABLES,
        "plots": lambda: PLOTS,
        "everything": lambda: [name for one in ("models", "formulations", "instances") for name in listings[one]()],
    }
    return listings[kind]()


def method_options(context: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """Complete ``-O NAME=VALUE`` by the options of the method named before, and by values if they are few."""
    del param
    from ..harness import registry

    method = context.params.get("model") or context.params.get("formulation")
    if method not in (*names("models"), *names("formulations")):
        return []
    fields = registry.get(str(method)).options.model_fields
    name, equals, value = word.partition("=")
    if not equals:
        return [
            CompletionItem(f"{field}=", help=info.description)
            for field, info in fields.items()
            if field.startswith(name)
        ]
    choices = _choices(fields[name].annotation) if name in fields else []
    return [CompletionItem(f"{name}={choice}") for choice in choices if choice.startswith(value)]


def _choices(kind: Any) -> list[str]:
    if kind is bool:
        return ["true", "false"]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(each.value) for each in kind]
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    return [choice for part in get_args(kind) for choice in _choices(part)]
