"""Exact verification of placements of experts, independent of the method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from ..core.answers import Placement
from ..core.bounds import Certificate, LeastLoads
from ..core.experts import Experts
from ..core.instance import Instance
from ..core.verdict import Verdict
from .contradiction import contradictions
from .objective_type import question_of
from .placement_bounds import proved_loads


def placement_verdict(instance: Instance, answer: Placement, certificate: Certificate | None) -> Verdict:
    """Verify a placement.

    Returns
    -------
    Verdict
        The objective is the largest load of a GPU, summed over layers. Metrics: ``layer_loads``, ``balancedness``
        (mean over largest load of GPUs, all layers together) and ``most_replicas``.
    """
    experts = instance.experts
    if experts is None:
        return Verdict(("a placement, but the instance has no experts",))
    if experts.gpus != instance.npus:
        return Verdict((f"experts for {experts.gpus:,} GPUs, but the network has {instance.npus:,}",))
    violations = violations_of(experts, answer)
    if violations:
        return Verdict(tuple(violations))
    largest = loads_of(experts, answer)
    load = sum(largest, Fraction(0))
    bound = bound_of(experts, certificate)
    if bound is None and isinstance(certificate, LeastLoads):
        violations.append(f"certificate: it has other layers than the {len(experts.loads):,} of the instance")
    violations += contradictions(load, bound, unit="load")
    average = sum((sum(loads, Fraction(0)) for loads in experts.loads), Fraction(0)) / experts.gpus
    metrics = question_of(instance, answer) | {
        "layer_loads": [float(each) for each in largest],
        "balancedness": float(average / load) if load else None,
        "most_replicas": max(max(Counter(e for gpu in layer for e in gpu).values()) for layer in answer.experts),
    }
    return Verdict(tuple(violations), float(load), None if bound is None else float(bound), metrics)


def bound_of(experts: Experts, certificate: Certificate | None) -> Fraction | None:
    """Recompute a certificate's bound on the sum over layers, None if not possible."""
    if not isinstance(certificate, LeastLoads):
        return None
    proved = proved_loads(experts, certificate)
    return None if proved is None else sum(proved, Fraction(0))


def violations_of(experts: Experts, answer: Placement) -> list[str]:
    """List the violations of a placement, one line per layer and kind."""
    if len(answer.experts) != len(experts.loads):
        return [f"{len(answer.experts):,} layers; expected {len(experts.loads):,}"]
    return [
        f"layer {layer}: {wrong}"
        for layer, gpus in enumerate(answer.experts)
        for wrong in _wrong_in_layer(experts, gpus)
    ]


def _wrong_in_layer(experts: Experts, gpus: Sequence[Sequence[int]]) -> list[str]:
    if len(gpus) != experts.gpus:
        return [f"{len(gpus):,} GPUs; expected {experts.gpus:,}"]
    wrong: list[str] = []
    for g, slots in enumerate(gpus):
        if len(slots) != experts.slots:
            wrong.append(f"GPU {g} has {len(slots):,} replicas; expected one in each of {experts.slots:,} slots")
        if unknown := [e for e in slots if not 0 <= e < experts.count]:
            wrong.append(f"GPU {g} has expert {unknown[0]}; expected experts from 0 to {experts.count - 1}")
    held = {e for slots in gpus for e in slots}
    if missing := [e for e in range(experts.count) if e not in held]:
        wrong.append(f"expert {missing[0]} has no replica")
    return wrong or _groups_apart(experts, gpus)


def _groups_apart(experts: Experts, gpus: Sequence[Sequence[int]]) -> list[str]:
    """Report groups on several nodes, and nodes with too many groups, if groups are bound to nodes."""
    if experts.nodes == 1:
        return []
    of_group: dict[int, set[int]] = {}
    for g, slots in enumerate(gpus):
        for e in slots:
            of_group.setdefault(experts.group(e), set()).add(experts.node(g))
    wrong = [
        f"group {group} is on nodes {', '.join(map(str, sorted(nodes)))}; expected one of them"
        for group, nodes in of_group.items()
        if len(nodes) > 1
    ]
    each = experts.groups // experts.nodes
    on_node = Counter(node for nodes in of_group.values() for node in nodes)
    return wrong or [
        f"node {node} has {count:,} groups; expected {each:,}" for node, count in on_node.items() if count != each
    ]


def loads_of(experts: Experts, answer: Placement) -> list[Fraction]:
    """Return the largest GPU load of every layer, an expert's load divided among its replicas."""
    largest: list[Fraction] = []
    for loads, gpus in zip(experts.loads, answer.experts, strict=True):
        count = Counter(e for slots in gpus for e in slots)
        share = {e: loads[e] / k for e, k in count.items()}
        largest.append(max(sum((share[e] for e in slots), Fraction(0)) for slots in gpus))
    return largest
