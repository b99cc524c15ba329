"""Support matrix of methods, computed from every method's own answers so that nothing is declared twice."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ..core.collective import collective_names, collectives
from ..core.errors import CwbError, Refusal
from ..core.instance import Instance
from ..core.method import Method
from ..core.network_views import supported_view
from ..harness import registry
from ..instances.demand import is_messages, with_demand

#: Small instances of every kind of network; a method takes a kind if it takes one of them.
NETWORKS: Mapping[str, Sequence[str]] = {
    "links": ("ring(4)", "torus(4,4)", "mesh(3,3)", "hypercube(3)"),
    "switches": ("star(4)", "star(4, multicast=true)", "switch2d(2, 2)"),
    "fabric": ("RI(4)_FC(2)",),
    "training": ("gpt-3-3d", "msft-1t-hp-4d"),
    "experts": ("experts(gpus=2, slots=2, loads=[3, 2, 1])",),
}

_OWN = ""  #: What is asked of instances that say themselves what is to be found.


@dataclass(frozen=True)
class MethodSupport:
    """Networks and collectives that a method supports."""

    networks: tuple[str, ...]  #: Kinds of networks, of :data:`NETWORKS`.
    collectives: tuple[str, ...]

    def of_collectives(self) -> str:
        """Summarize the collectives in a short text."""
        if not self.collectives:
            return "those of its workload" if self.networks == ("training",) else "none"
        plain = [kind.name for kind in collectives() if kind.sized_by is None]
        missing = [name for name in plain if name not in self.collectives]
        if len(missing) > 2:
            return ", ".join(self.collectives)
        sized = [name for name in self.collectives if name not in plain]
        if len(sized) == len(collectives()) - len(plain):
            sized = ["all v-forms"]
        text = f"all but {' and '.join(missing)}" if missing else "all"
        return f"{text}, also {', '.join(sized)}" if sized else text


@cache
def _probes(kinds: tuple[str, ...]) -> Mapping[tuple[str, str], Sequence[Instance]]:
    """Return small instances by the kind of network and the collective, each with all of these that it may have."""
    from ..instances import load

    probes: dict[tuple[str, str], list[Instance]] = {}
    for network, specs in NETWORKS.items():
        for instance in map(load, specs):
            for name in [_OWN] if network in ("training", "experts") else kinds:
                text = f"{name}(skew=1)" if is_messages(name) else name
                probes.setdefault((network, name), []).append(with_demand(instance, text or None, None, None))
    return probes


def support_of(method: Method) -> MethodSupport:
    """Return the networks and collectives that a method supports."""
    probes = _probes(tuple(collective_names())).items()
    pairs = [at for at, instances in probes if any(refusal(method, each, as_it_is=True) is None for each in instances)]
    networks, names = ({place[part] for place in pairs} for part in (0, 1))
    kinds = tuple(kind.name for kind in collectives() if kind.name in names)
    return MethodSupport(tuple(network for network in NETWORKS if network in networks), kinds)


def refusal(method: Method, instance: Instance, *, as_it_is: bool = False) -> Refusal | None:
    """Return the reason why a method supports no view of an instance; None if it supports one.

    Views are links and fabric; with ``as_it_is`` only the given one counts.
    """
    try:
        return method.supports(instance) if as_it_is else supported_view(method, instance)[1]
    except CwbError as error:
        return Refusal("other", str(error))
    except Exception as error:  # of a method of somebody's own
        return Refusal("other", f"{type(error).__name__}: {error}")


def method_refusals(instance: Instance) -> Iterator[tuple[Method, Refusal | None]]:
    """Yield every method with its refusal of an instance or None; supporting methods come first."""
    rows = [(method, refusal(method, instance)) for method in map(registry.get, registry.names())]
    yield from ((method, reason) for method, reason in rows if reason is None)
    yield from ((method, reason) for method, reason in rows if reason is not None)


def methods() -> Iterator[dict[str, str]]:
    """Yield every method by family: type of its objective, and supported problems."""
    families = [registry.family(name) for name in registry.names()]
    for method in map(registry.get, sorted(registry.names(), key=lambda name: families.index(registry.family(name)))):
        support = support_of(method)
        yield {
            "name": method.name,
            "family": registry.family(method.name),
            "kind": method.kind.value,
            "network": ", ".join(support.networks) or "none",
            "summary": method.summary,
            "collectives": support.of_collectives(),
        }


def methods_for(instance: Instance) -> Iterator[dict[str, str]]:
    """Yield the methods that support an instance, then the others with the reason."""
    for method, reason in method_refusals(instance):
        yield {
            "name": method.name,
            "family": registry.family(method.name),
            "kind": method.kind.value,
            "takes it": "yes" if reason is None else "no",
            "why not" if reason else "summary": reason.text if reason else method.summary,
        }
