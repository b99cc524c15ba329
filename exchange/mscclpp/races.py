"""Accesses to the same memory, one of which writes, that nothing puts in order."""

from __future__ import annotations

from collections.abc import Callable

from ..msccl.findings import Findings
from .order import Access, Order

#: Races beyond which no more are looked for.
ENOUGH = 32


class Races:
    """Detector of races over all accesses.

    Parameters
    ----------
    order : Order
        Order of events that is certain.
    findings : Findings
        Findings to which races are added.
    place, call : callable
        Description of an access, and its call.
    """

    def __init__(
        self,
        gpus: int,
        order: Order,
        findings: Findings,
        place: Callable[[Access], str],
        call: Callable[[Access], int],
    ) -> None:
        self.order, self.findings, self.place, self.call = order, findings, place, call
        self.written: list[dict[int, Access]] = [{} for _ in range(gpus)]
        self.read: list[dict[int, list[Access]]] = [{} for _ in range(gpus)]

    def reads(self, gpu: int, address: int, access: Access, start: int) -> None:
        """Note that an access reads; what began it has so many events before."""
        before = self.written[gpu].get(address)
        if before is not None:
            self.after(before, start, access, written=True)
        since = self.read[gpu].setdefault(address, [])
        if since and since[-1].actor == access.actor:
            since[-1] = access
        else:
            since.append(access)

    def writes(self, gpu: int, address: int, access: Access, start: int) -> None:
        """Note that an access writes."""
        before = self.written[gpu].get(address)
        if before is not None:
            self.after(before, start, access, written=True)
        for other in self.read[gpu].pop(address, ()):
            self.after(other, start, access, written=False)
        self.written[gpu][address] = access

    def forget(self, gpu: int, address: int) -> list[tuple[Access, bool]]:
        """Forget what was done with memory, and give it: accesses, and whether they wrote."""
        written = self.written[gpu].pop(address, None)
        found = [(one, False) for one in self.read[gpu].pop(address, ())]
        return found if written is None else [(written, True), *found]

    def after(self, first: Access, start: int, second: Access, *, written: bool) -> None:
        """Report that two accesses are in no order, if they are in none."""
        if self.findings.counts["race"] > ENOUGH:
            return
        found = self.order.before(first, start, second, relaxed=not written)
        if found:
            return
        what = "written" if written else "read"
        if written and self.order.before(first, start, second, relaxed=True):
            if self.call(first) < self.call(second):
                return  # what a call has written is there when it has ended
            text = f"uses memory that is written by {self.place(first)}, and only relaxed signals are between them"
            self.findings.add("relaxed", text, self.place(second), wrong=False)
            return
        text = f"uses memory that is {what} by {self.place(first)}, and nothing puts them in order"
        if found is None:
            text += ", as far as was searched"
        self.findings.add("race", text, self.place(second))
