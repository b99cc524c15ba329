"""Placements of experts: exact verification of them and of their certificates, and their files.

A file has experts, slots, placement and certificate in one JSON object.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb, lcm
from pathlib import Path
from typing import Any, NamedTuple

from ..core.answers import Placement
from ..core.bounds import Certificate, LeastLoads, PairPrices, SolverBound
from ..core.errors import InputError, locate_errors
from ..core.experts import Experts
from ..core.grouping import group_by_key
from ..core.instance import Instance
from ..core.outcome import Verdict
from .files import to_lists, write_data
from .metrics import contradictions, question_of
from .strict import Fields, fraction, integers, is_list, read_json, reject_if


def placement_verdict(instance: Instance, answer: Placement, certificate: Certificate | None) -> Verdict:
    """Verify a placement; the objective is the largest load of a GPU, summed over layers."""
    experts = instance.experts
    if experts is None:
        return Verdict(("a placement, but the instance has no experts",))
    if experts.gpus != instance.npus:
        return Verdict((f"experts for {experts.gpus:,} GPUs, but the network has {instance.npus:,}",))
    violations, largest, bound = assess_placement(experts, answer, certificate)
    if not largest:
        return Verdict(tuple(violations))
    load = sum(largest, Fraction(0))
    average = sum((sum(loads, Fraction(0)) for loads in experts.loads), Fraction(0)) / experts.gpus
    metrics = question_of(instance, answer) | {
        "layer_loads": [float(each) for each in largest],
        "balancedness": float(average / load) if load else None,
        "most_replicas": max(max(Counter(e for gpu in layer for e in gpu).values()) for layer in answer.experts),
    }
    return Verdict(tuple(violations), float(load), None if bound is None else float(bound), metrics)


def assess_placement(
    experts: Experts, answer: Placement, certificate: Certificate | None
) -> tuple[list[str], list[Fraction], Fraction | None]:
    """Return violations, the largest load of every layer, none if the placement is wrong, and the proved bound."""
    violations, bound = violations_of(experts, answer), None
    largest = [] if violations else loads_of(experts, answer)
    if isinstance(certificate, LeastLoads):
        proved = proved_loads(experts, certificate)
        bound = None if proved is None else sum(proved, Fraction(0))
        if bound is None:
            violations.append(f"certificate: it has other layers than the {len(experts.loads):,} of the experts")
    if largest:
        violations += contradictions(sum(largest, Fraction(0)), bound, unit="load")
    return violations, largest, bound


def violations_of(experts: Experts, answer: Placement) -> list[str]:
    """List the violations of a placement, one line per layer and kind."""
    if len(answer.experts) != len(experts.loads):
        return [f"{len(answer.experts):,} layers; expected {len(experts.loads):,}"]
    layers = enumerate(answer.experts)
    return [f"layer {layer}: {wrong}" for layer, gpus in layers for wrong in _wrong_in_layer(experts, gpus)]


def _wrong_in_layer(experts: Experts, gpus: Sequence[Sequence[int]]) -> list[str]:
    if len(gpus) != experts.gpus:
        return [f"{len(gpus):,} GPUs; expected {experts.gpus:,}"]
    wrong: list[str] = []
    for g, slots in enumerate(gpus):
        if len(slots) != experts.slots:
            wrong.append(f"GPU {g} has {len(slots):,} replicas; expected one in each of {experts.slots:,} slots")
        if unknown := [e for e in slots if not 0 <= e < experts.count]:
            wrong.append(f"GPU {g} has expert {unknown[0]}; expected experts from 0 to {experts.count - 1}")
    present = {e for slots in gpus for e in slots}
    if missing := [e for e in range(experts.count) if e not in present]:
        wrong.append(f"expert {missing[0]} has no replica")
    return wrong or _groups_apart(experts, gpus)


def _groups_apart(experts: Experts, gpus: Sequence[Sequence[int]]) -> list[str]:
    """Report groups on several nodes, and nodes with too many groups, if groups are bound to nodes."""
    if experts.nodes == 1:
        return []
    places = ((experts.group(e), experts.node(g)) for g, slots in enumerate(gpus) for e in slots)
    of_group = group_by_key(dict.fromkeys(places))
    apart = {group: ", ".join(map(str, sorted(nodes))) for group, nodes in of_group.items() if len(nodes) > 1}
    wrong = [f"group {group} is on nodes {nodes}; expected one of them" for group, nodes in apart.items()]
    each = experts.groups // experts.nodes
    counts = Counter(node for nodes in of_group.values() for node in nodes).items()
    return wrong or [f"node {node} has {count:,} groups; expected {each:,}" for node, count in counts if count != each]


def loads_of(experts: Experts, answer: Placement) -> list[Fraction]:
    """Return the largest GPU load of every layer, an expert's load divided among its replicas."""
    largest: list[Fraction] = []
    for loads, gpus in zip(experts.loads, answer.experts, strict=True):
        count = Counter(e for slots in gpus for e in slots)
        share = {e: loads[e] / k for e, k in count.items()}
        largest.append(max(sum((share[e] for e in slots), Fraction(0)) for slots in gpus))
    return largest


#: Ways to divide groups, to number replicas, and steps of filling slots, that are looked at in all layers together.
MOST_DIVISIONS, MOST_NUMBERS, MOST_STEPS = 1_000_000, 1_000_000, 5_000_000

#: Of one node: ways to number replicas, the most of one expert, and GPUs with more than two slots; and nodes.
_NUMBERS, _REPLICAS, _GPUS, _NODES = 20_000, 64, 300, 300

_LIGHT = 1000  #: Loads v in the prices of a layer.


class _TooManyError(Exception):
    """The limit on enumeration is exceeded; nothing is proved."""


class _SearchAllowance(Counter[str]):
    def spend(self, what: str, amount: int = 1) -> None:
        """Subtract an amount; raise :class:`_TooManyError` when none remains."""
        self[what] -= amount
        if self[what] < 0:
            raise _TooManyError


def proved_loads(experts: Experts, certificate: LeastLoads) -> list[Fraction] | None:
    """Return the proved load of every layer, at most the claimed one; None if layers differ."""
    if not len(certificate.loads) == len(certificate.prices) == len(experts.loads):
        return None
    quota = _SearchAllowance(divisions=MOST_DIVISIONS, numbers=MOST_NUMBERS, steps=MOST_STEPS)
    return [
        _proved_load(experts.layer(layer), load, prices, quota)
        for layer, (load, prices) in enumerate(zip(certificate.loads, certificate.prices, strict=True))
    ]


def _proved_load(layer: Experts, load: Fraction, prices: PairPrices | None, quota: _SearchAllowance) -> Fraction:
    average = sum(layer.loads[0], Fraction(0)) / layer.gpus
    if load <= average or _too_small(layer.loads[0], layer.gpus, layer.slots, load):
        return load
    if prices is not None and is_refuted_by_prices(layer, load, prices):
        return load
    try:
        refuted = layer.nodes <= _NODES and not _divides(layer, load, tuple(range(layer.groups)), {}, quota)
    except _TooManyError:
        refuted = False
    return load if refuted else average


def _too_small(loads: Sequence[Fraction], gpus: int, slots: int, load: Fraction) -> bool:
    """Return whether GPUs below a load lack total capacity, or slots for the replicas."""
    if sum(loads, Fraction(0)) >= load * gpus:
        return True
    return sum(each // load + 1 for each in loads) > gpus * slots


def is_refuted_by_prices(layer: Experts, load: Fraction, prices: PairPrices) -> bool:
    """Return whether the replicas' total price exceeds that of the GPUs, by prices of pairs."""
    weights = [weight for _, weight in prices.light]
    of_pairs = all(0 < v <= load / 2 for v, _ in prices.light) and 0 < len(weights) <= _LIGHT
    if layer.slots != 2 or not of_pairs or min(weights) < 0 or sum(weights) != 1 or prices.replica < 0:
        return False
    lengths = (load, *layer.loads[0], *(v for v, _ in prices.light))
    unit = lcm(*(length.denominator for length in lengths))
    whole = lcm(prices.replica.denominator, *(weight.denominator for weight in weights))
    light = [(int(v * unit), int((load - v) * unit), int(weight * whole)) for v, weight in prices.light]
    price = int(2 * prices.replica * whole)  # what counts 1 has two halves
    cost = sum(_least_cost(int(each * unit), int(load * unit), light, price) for each in layer.loads[0])
    return cost > 2 * layer.gpus * (whole + price)


def _least_cost(load: int, limit: int, light: Sequence[tuple[int, int, int]], price: int) -> int:
    """Return the least total price of an expert's replicas, all below the load limit."""
    number, halves, costs = load // limit + 1, 2 * sum(weight for *_, weight in light), list[int]()
    ends = sorted((load // one + 1, weight) for v, rest, weight in light for one in (v, rest))
    for end, weight in ends:  # between these numbers more replicas cost more
        if end > number:
            costs.append(number * (halves + price))
            number = end
        halves -= weight
    return min([*costs, number * price])


def _divides(
    layer: Experts, load: Fraction, rest: tuple[int, ...], fits: dict[tuple[int, ...], bool], quota: _SearchAllowance
) -> bool:
    """Return whether the remaining groups fit on nodes whose GPUs all are below a load."""
    if not rest:
        return True
    each, size = layer.groups // layer.nodes, layer.count // layer.groups
    for others in combinations(rest[1:], each - 1):
        quota.spend("divisions")
        groups = (rest[0], *others)
        if groups not in fits:
            loads = [layer.loads[0][group * size + place] for group in groups for place in range(size)]
            fits[groups] = _fits(loads, layer.gpus // layer.nodes, layer.slots, load, quota)
        if fits[groups] and _divides(layer, load, tuple(p for p in rest if p not in groups), fits, quota):
            return True
    return False


def _fits(loads: Sequence[Fraction], gpus: int, slots: int, load: Fraction, quota: _SearchAllowance) -> bool:
    """Return whether experts may fit on a node with all GPUs below a load, True if undecided."""
    if _too_small(loads, gpus, slots, load):
        return False
    least = [int(each // load) + 1 for each in loads]
    further = gpus * slots - sum(least)
    ways = comb(further + len(loads) - 1, further)
    if ways > _NUMBERS or max(least) + further > _REPLICAS or (slots > 2 and gpus > _GPUS):
        return True
    quota.spend("numbers", ways)
    unit = lcm(load.denominator, *(each.denominator for each in loads)) * lcm(*range(1, max(least) + further + 1))
    whole, limit = [int(each * unit) for each in loads], int(load * unit)
    return any(_fill(replicas, gpus, slots, limit, quota) for replicas in _replicas(whole, least, further))


def _replicas(loads: Sequence[int], least: Sequence[int], further: int) -> Iterator[list[int]]:
    """Yield the loads of all replicas in decreasing order, for every choice of replica counts."""
    for more in combinations_with_replacement(range(len(loads)), further):
        replicas: list[int] = []
        for e, load in enumerate(loads):
            number = least[e] + more.count(e)
            replicas += [load // number] * number
        yield sorted(replicas, reverse=True)


def _fill(replicas: list[int], gpus: int, slots: int, limit: int, quota: _SearchAllowance) -> bool:
    """Return whether replicas fill the slots of GPUs that all are below a limit; one has the heaviest replica."""
    quota.spend("steps")
    if slots == 1:
        return replicas[0] < limit
    if slots == 2:  # the heaviest beside the lightest, where no other one is worse off
        return all(replicas[g] + replicas[-1 - g] < limit for g in range(gpus))
    if not replicas:
        return True
    heaviest, rest = replicas[0], replicas[1:]
    attempts: set[tuple[int, ...]] = set()
    for places in combinations(range(len(rest)), slots - 1):
        quota.spend("steps")
        beside = tuple(rest[place] for place in places)
        if beside in attempts or heaviest + sum(beside) >= limit:
            continue
        attempts.add(beside)
        if _fill([load for place, load in enumerate(rest) if place not in places], gpus - 1, slots, limit, quota):
            return True
    return False


SCHEMA = "cwb-placement/1"

_MANY = 2**40


class PlacementFile(NamedTuple):
    """Contents of a placement file."""

    name: str
    instance_sha256: str
    experts: Experts
    answer: Placement
    certificate: Certificate | None
    extra: Mapping[str, Any]


def write_placement(
    path: Path,
    instance: Instance,
    answer: Placement,
    certificate: Certificate | None = None,
    extra: Mapping[str, Any] | None = None,
) -> str:
    """Write a placement with its experts atomically, compressed if named ``.gz``; return its SHA-256."""
    experts = instance.experts
    if experts is None:
        raise InputError("expected an instance with experts", source=str(path))
    if path.suffix == ".npz":
        problem = "placements have no binary columns; expected a name such as p.json or p.json.gz"
        raise InputError(problem, source=str(path))
    numbers = {name: getattr(experts, name) for name in ("gpus", "slots", "groups", "nodes")}
    data = {
        "schema": SCHEMA,
        "instance": instance.name,
        "instance_sha256": instance.sha256,
        "experts": {**numbers, "loads": [[str(load) for load in loads] for loads in experts.loads]},
        "placement": [[list(gpu) for gpu in layer] for layer in answer.experts],
        "certificate": None if certificate is None else certificate.to_json(),
        "extra": dict(extra or {}),
    }
    return write_data(path, data)


def read_placement(path: Path) -> PlacementFile:
    """Read a placement file."""
    with locate_errors(source=str(path)):
        file = Fields(read_json(path))
        file.word("schema", [SCHEMA])
        name, sha256 = file.word("instance"), file.word("instance_sha256")
        experts = _read_experts(file.fields("experts"))
        layers = tuple(
            tuple(tuple(integers(gpu, 0, _MANY, place).tolist()) for place, gpu in _lists(gpus, place))
            for place, gpus in _lists(file.list_("placement"), "placement")
        )
        certificate = _read_certificate(file.fields("certificate")) if file.has("certificate") else None
        extra = to_lists(file.take("extra")) if file.has("extra") else {}
        Fields(extra, "extra")
        file.reject_unread()
        return PlacementFile(name, sha256, experts, Placement(layers), certificate, extra)


def _read_experts(file: Fields) -> Experts:
    loads = tuple(
        tuple(fraction(load, f"{place}[{e}]") for e, load in enumerate(row))
        for place, row in _lists(file.list_("loads"), file.at("loads"))
    )
    numbers = [file.integer(name, 1, _MANY) for name in ("gpus", "slots", "groups", "nodes")]
    file.reject_unread()
    with locate_errors("experts"):
        return Experts(loads, *numbers)


def _lists(values: Any, place: str) -> list[tuple[str, Any]]:
    for index, value in enumerate(values):
        reject_if(not is_list(value), "expected a list", place=f"{place}[{index}]")
    return [(f"{place}[{index}]", value) for index, value in enumerate(values)]


def _read_certificate(file: Fields) -> Certificate:
    if file.word("certificate", ["least-loads", "solver"]) == "solver":
        certificate: Certificate = SolverBound(file.word("solver"), file.word("version"))
    else:
        loads = tuple(file.fractions("loads", len(file.list_("loads"))))
        prices = enumerate(file.list_("prices", len(loads)))
        certificate = LeastLoads(loads, tuple(_read_prices(each, f"{file.at('prices')}[{i}]") for i, each in prices))
    file.reject_unread()
    return certificate


def _read_prices(data: Any, place: str) -> PairPrices | None:
    if data is None:
        return None
    file = Fields(data, place)
    light: list[tuple[Any, Any]] = []
    for at, pair in _lists(file.list_("light"), file.at("light")):
        reject_if(len(pair) != 2, "expected a load and its weight", place=at)
        light.append((fraction(pair[0], f"{at}[0]"), fraction(pair[1], f"{at}[1]")))
    prices = PairPrices(file.fraction("replica"), tuple(light))
    file.reject_unread()
    return prices
