"""Variants of TE-CCL's general form: without limits of buffers, with parts of chunks, and with a budget of sends."""

import cwb
import pyomo.environ as pyo

BASE = cwb.formulation("teccl/milp")


def parts(model, index):
    """Let sends and removals take any value between their bounds."""
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)


def few_sends(model, index):
    """``sum_{q, a} F[q, a, k] <= n``: in an epoch, no more sends start than the network has nodes."""

    @model.Constraint(range(index.epochs))
    def few_sends(m, k):
        return sum(m.F[send] for send in index.sends if send[2] == k) <= index.problem.nodes


NO_BUFFERS = BASE.derive("teccl/no-buffers", drop="limited_buffers")
LINEAR = BASE.derive("teccl/linear", add=parts, needs={"linear"}, bounds=True, extract=None)
FEW_SENDS = BASE.derive("teccl/few-sends", add=few_sends)
