"""Register of the generators, and their arguments from those of an expression, by their annotations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from inspect import Parameter, signature
from types import UnionType
from typing import Any, TypeAlias, get_type_hints

from ...core.budget import iterate_in_time
from ...core.errors import InputError, did_you_mean, locate_errors, show_value
from ...core.topology import Link, Topology
from ..expression import Expression, Value, show
from .building import NestedNetwork, Rate, Time

Generator: TypeAlias = Callable[..., Topology]

#: Generators by module, in the order of lists, as ``name``, or ``name:function`` if the function is called otherwise.
_MODULES = (
    ("grids", "line path:line ring mesh grid:mesh torus hypercube"),
    ("dense", "complete complete_bipartite circulant optimal_circulant directed_circulant"),
    ("words", "kautz generalized_kautz de_bruijn modified_de_bruijn diamond"),
    ("distance_regular", "hamming distance_regular"),
    ("grids", "twisted_torus twisted_hypercube"),
    ("dense", "random_regular double_binary_tree"),
    ("expansions", "line_graph l:line_graph product power degree_expansion parallel both_directions"),
    ("switch_networks", "star switch:star fat_tree dragonfly dragonfly_plus switch2d rfs3d fabric"),
    (
        "nvidia",
        "dgx1 ndv2 dgx2 dgx_a100 a100:dgx_a100 dgx_h100 h100:dgx_h100 dgx_h200:dgx_h100 h200:dgx_h100 "
        "dgx_b200 b200:dgx_b200 nvl72 gb200:nvl72",
    ),
    ("amd", "mi250 mi250_8 amd mi300x mi325x:mi300x"),
    ("nvidia", "pcie"),
    ("clusters", "internal1 internal2 rail pods three_tier mixed"),
    ("supercomputers", "frontera leonardo frontier"),
    ("wan", "gscale equinix_size idn_size random_wan"),
)

#: Name to "module:function", relative to this package; imported when it is used.
GENERATORS = {
    (parts := entry.partition(":"))[0]: f"{module}:{parts[2] or parts[0]}"
    for module, entries in _MODULES
    for entry in entries.split()
}

#: Effective over nominal rates of machines: numbers of NCCL and RCCL (``src/graph/topo.h``) over those of data sheets.
#: They are of links within a box, by the kind of node that is joined to a GPU or to another one of its kind.
_EFFECTIVE = (
    ("gpu", Fraction(20, 25), "dgx1 ndv2 leonardo"),
    ("nvswitch", Fraction(20, 25), "dgx_a100 rail pods three_tier mixed"),
    ("nvswitch", Fraction("20.6") / 25, "dgx_h100"),
    ("nvswitch", Fraction("40.1") / 50, "dgx_b200 nvl72"),
    ("nvswitch", Fraction(1), "dgx2"),  # its rates are measured ones
    ("gpu", Fraction(36, 50), "mi250 mi250_8 amd mixed frontier"),
    ("gpu", Fraction(48, 64), "mi300x"),
    ("pcie", Fraction(24, 32), "pcie"),
    ("cpu", 10 / Fraction("67.2"), "pcie"),
)


def find_generator(name: str) -> Generator:
    """Import a generator by its name."""
    if name not in GENERATORS:
        hint = did_you_mean(name, GENERATORS) or "; expected one that 'cwb list topologies' names"
        raise InputError(f"unknown topology {show_value(name)}{hint}")
    module, _, function = GENERATORS[name].partition(":")
    generator: Generator = getattr(import_module(f".{module}", __package__), function)
    return generator


def call(generator: Generator, expression: Expression) -> Topology:
    """Call a generator with the arguments of an expression."""
    bound = _bind(generator, expression)
    parameters = _parameters(generator)
    missing = [name for name, p in parameters.items() if p.default is p.empty and not _repeats(p) and name not in bound]
    if missing:
        raise InputError(f"missing argument {missing[0]!r}; expected {usage(expression.name, generator)}")
    readers = {name: READERS[kind] for name, kind in hints(generator).items()}
    positional: list[object] = []
    keywords: dict[str, object] = {}
    for name, value in bound.items():
        if _repeats(parameters[name]):
            positional += [_read(readers[name], entry, f"{name}[{i}]") for i, entry in enumerate(value)]
        else:
            keywords[name] = _read(readers[name], value, name)
    rates = keywords.pop("rates", "nominal")
    if rates not in ("nominal", "effective"):
        raise InputError(f"{str(rates)[:40]!r} is unknown; expected nominal or effective", place="rates")
    network = generator(*positional, **keywords)
    if rates == "nominal":
        return network
    parts = _effective_parts(generator)
    links = iterate_in_time((_scale(link, parts) for link in network.links), len(network.links), "links")
    return replace(network, links=tuple(links))


def _effective_parts(generator: Generator) -> dict[str, Fraction]:
    return {kind: part for kind, part, names in _EFFECTIVE if generator.__name__ in names.split()}


def _scale(link: Link, parts: Mapping[str, Fraction]) -> Link:
    (box, _, one), (other_box, _, other) = link.source.rpartition("."), link.target.rpartition(".")
    part = parts.get(max(one.rstrip("0123456789"), other.rstrip("0123456789")), 1) if box == other_box else 1
    return replace(link, bandwidth_Bps=link.bandwidth_Bps * part)


def _parameters(generator: Generator) -> dict[str, Parameter]:
    """Return the parameters of a generator; machines have ``rates`` too."""
    parameters = dict(signature(generator).parameters)
    if _effective_parts(generator):
        parameters["rates"] = Parameter("rates", Parameter.KEYWORD_ONLY, default="nominal")
    return parameters


def usage(name: str, generator: Generator) -> str:
    """Write how a generator is called, as an expression with its defaults."""
    return f"{name}({', '.join(_arguments(generator))})"


def hints(generator: Generator) -> Mapping[str, Any]:
    """Annotation of every parameter; each is a key of :data:`READERS`."""
    types = get_type_hints(generator, include_extras=True)
    return {name: types.get(name, str) for name in _parameters(generator)}


def _arguments(generator: Generator) -> Iterator[str]:
    for name, parameter in _parameters(generator).items():
        if _repeats(parameter):
            yield f"{name}..."
        else:
            yield name if parameter.default is parameter.empty else f"{name}={show(parameter.default)}"


def _repeats(parameter: Parameter) -> bool:
    return parameter.kind is parameter.VAR_POSITIONAL


def _bind(generator: Generator, expression: Expression) -> dict[str, Any]:
    """Assign every argument to the parameter it is meant for; a parameter that repeats gets all of its values."""
    parameters = _parameters(generator)
    bound: dict[str, Any] = {}
    positional = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    variadic = [name for name, p in parameters.items() if _repeats(p)]
    bound.update(zip(positional, expression.positional, strict=False))
    rest = expression.positional[len(positional) :]
    if variadic:
        bound[variadic[0]] = rest
    elif rest:
        raise InputError(
            f"{len(expression.positional)} arguments without a name; expected at most {len(positional)}, as in "
            + usage(expression.name, generator)
        )
    names = [name for name in parameters if name not in variadic]
    for name, value in expression.keywords.items():
        if name not in names:
            raise InputError(f"unknown argument {show_value(name)}; expected {', '.join(names) or 'none'}")
        if name in bound:
            raise InputError(f"argument {show_value(name)} is given twice, without and with its name; expected it once")
        bound[name] = value
    return bound


def _read(reader: Callable[[Value], object], value: Value, place: str) -> object:
    with locate_errors(place):
        return reader(value)


def _reader(
    kinds: type | UnionType, what: str, expected: str, convert: Callable[[Any], object] = lambda value: value
) -> Callable[[Value], object]:
    """Return a function that rejects values of other kinds, and converts the others."""

    def read(value: Value) -> object:
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            text = show(value)
            short = text if len(text) <= 40 else text[:37] + "..."
            raise InputError(f"{short} is no {what}; expected {expected}")
        return convert(value)

    return read


def _quantity(value: Value) -> str:
    # The generator reads the text. Anything else is shown to it as text, for it to reject with the same words.
    return value if isinstance(value, str) else show(value)


def _network(value: Expression) -> NestedNetwork:
    return NestedNetwork(str(value), lambda: call(find_generator(value.name), value))


_integer = _reader(int, "integer", "an integer, such as 8")
_integers = _reader(
    tuple,
    "list",
    "a list of integers, such as [1, 4]",
    lambda values: tuple(_read(_integer, entry, f"[{index}]") for index, entry in enumerate(values)),
)
_quantities = _reader(
    tuple, "list", "a list of quantities, such as ['50 GB/s', '25 GB/s']", lambda values: tuple(map(_quantity, values))
)

#: How a value is read for a parameter of each annotation that a generator may have.
READERS: Mapping[Any, Callable[[Value], object]] = {
    int: _integer,
    Fraction: _reader(int | Fraction, "number", "a number, such as 0.5", Fraction),
    bool: _reader(bool, "truth value", "true or false"),
    str: _reader(str, "text", "text"),
    Sequence[int]: _integers,
    Rate: _quantity,
    Time: _quantity,
    Sequence[Rate]: _quantities,
    Sequence[Time]: _quantities,
    NestedNetwork: _reader(Expression, "network", "an expression, such as ring(4)", _network),
}
