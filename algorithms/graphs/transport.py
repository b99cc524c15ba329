"""Transportation problem: assign rows to a few classes with limited room, at least cost.

An assignment to slots would be equivalent, but has hundreds of slots where classes are a dozen. Rows are assigned
one by one, each by a shortest path over the classes on which others make room.
"""

from typing import Any

import numpy as np

from ...core.kernel import kernel

FAR = 2**62  #: more than any difference of costs


@kernel
def assign_rows(cost: Any, room: Any) -> Any:
    """Return the class of each row in an assignment of least cost.

    Costs, of shape (rows, classes), are integers below 2^50, so that no cycle has negative cost by rounding. ``room``
    is the capacity of each class in rows; the sum is at least the number of rows.
    """
    rows, classes = cost.shape
    class_of = np.full(rows, -1, dtype=np.int64)
    rest = room.copy()
    step = np.full((classes, classes), FAR, dtype=np.int64)  # what the cheapest row of one class costs more in another
    mover = np.full((classes, classes), -1, dtype=np.int64)
    before = np.empty(classes, dtype=np.int64)
    for row in range(rows):
        far = cost[row].copy()
        before[:] = -1
        shorter = True
        while shorter:
            shorter = False
            for a in range(classes):
                for b in range(classes):
                    if mover[a, b] >= 0 and far[a] + step[a, b] < far[b]:
                        far[b], before[b], shorter = far[a] + step[a, b], a, True
        end = -1
        for a in range(classes):
            if rest[a] > 0 and (end < 0 or far[a] < far[end]):
                end = a
        rest[end] -= 1
        to = end
        while before[to] >= 0:
            a = before[to]
            one = mover[a, to]
            class_of[one] = to
            _leave(cost, class_of, step, mover, one, a)
            _join(cost, step, mover, one, to)
            to = a
        class_of[row] = to
        _join(cost, step, mover, row, to)
    return class_of


@kernel
def _join(cost: Any, step: Any, mover: Any, row: int, a: int) -> None:
    for b in range(cost.shape[1]):
        more = cost[row, b] - cost[row, a]
        if b != a and (mover[a, b] < 0 or more < step[a, b]):
            step[a, b], mover[a, b] = more, row


@kernel
def _leave(cost: Any, class_of: Any, step: Any, mover: Any, row: int, a: int) -> None:
    for b in range(cost.shape[1]):
        if mover[a, b] != row:
            continue
        mover[a, b] = -1
        for other in range(len(class_of)):
            if class_of[other] == a:
                more = cost[other, b] - cost[other, a]
                if mover[a, b] < 0 or more < step[a, b]:
                    step[a, b], mover[a, b] = more, other
