"""Single changes of right MSCCL files and MSCCL++ plans, each verified twice; see ``exchange.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from cwb.exchange.msccl.check import check_algorithm
from cwb.exchange.msccl.dialects import DIALECTS
from cwb.exchange.msccl.flow import flow_of
from cwb.exchange.msccl.lower import Target, lower
from cwb.exchange.mscclpp import check as plans
from cwb.exchange.mscclpp import lower as planning


def mutants(count: int) -> int:
    """Change right files in one place each, and verify every one twice."""
    from families import FAMILIES
    from mutants import MUTATIONS, mutant
    from programs import exchange_all_reduce, ring_all_gather
    from slow_run import is_right

    runtime = DIALECTS["msccl-executor"]
    programs = [ring_all_gather(4), exchange_all_reduce()]
    for name in ("recursive_doubling", "direct_all_to_all", "binomial_reduce", "chain_trees", "timed_chain_all_reduce"):
        flow = flow_of(*FAMILIES[name]())
        programs += [lower(flow, Target(one)) for one in (runtime, DIALECTS["rccl"])]
    right = (lambda one: bool(check_algorithm(one, [runtime]).problems)), (lambda one: is_right(one, 24))
    return max(verify_mutants(count, "files", programs, MUTATIONS, mutant, *right), plan_mutants(count))


def plan_mutants(count: int) -> int:
    """The same for MSCCL++ plans."""
    import plan_mutants as changes
    from families import FAMILIES
    from plans import PLANS, WHOLE
    from slow_plan import is_right

    made = [PLANS[name]() for name in WHOLE]
    for name in ("ring_all_reduce", "recursive_doubling", "binomial_reduce", "chain_trees", "timed_chain_all_reduce"):
        flow = flow_of(*FAMILIES[name]())
        targets = planning.Target(), planning.Target(protocol="LL", inplace=True), planning.Target(box=2)
        made += [planning.lower(flow, one) for one in targets]
    right = (lambda one: bool(plans.check_plan(one).problems)), is_right
    return verify_mutants(count, "plans", made, changes.CHANGES, changes.mutant, *right)


def verify_mutants(
    count: int,
    what: str,
    programs: Sequence[Any],
    changes: Mapping[str, Any],
    change_of: Callable[[Any, str, int], Any],
    refuses: Callable[[Any], bool],
    is_right: Callable[[Any], bool],
) -> int:
    """Verify changes twice, and print how often which of the two found something."""
    counts: Counter[tuple[bool, bool]] = Counter()
    missed: list[str] = []
    began = perf_counter()
    for number in range(count):
        program, change = programs[number % len(programs)], list(changes)[number // len(programs) % len(changes)]
        other = change_of(program, change, number)
        caught, wrong = refuses(other), not is_right(other)
        counts[wrong, caught] += 1
        if wrong and not caught:
            missed.append(f"missed: {change}, {number}")
    seconds = perf_counter() - began
    print(f"{count} mutants of {len(programs)} {what} by {len(changes)} kinds of change in {seconds:.1f} s")
    print(f"caught: {counts[True, True]}; missed: {counts[True, False]}; no change of meaning: {counts[False, False]}")
    print(f"refused although many random runs are right (races, rules): {counts[False, True]}")
    print("\n".join(missed), end="\n" if missed else "")
    return int(bool(missed))
