"""Transformers described by a few numbers, and the training workloads derived from them.

Derivation, for a layer of hidden size h, sequence length s, b sequences per data-parallel replica (global batch
over DP degree), TP degree t, p bytes per value (Megatron-LM's layer, two blocks with one weight-gradient collective
each):

=================  ==========  ============================  =======================
block              parameters  forward operations            TP all-reduce, forward
=================  ==========  ============================  =======================
attention          4 h^2 / t   (8 b s h^2 + 4 b s^2 h) / t   b s h p
MLP (ratio 4)      8 h^2 / t   16 b s h^2 / t                b s h p
=================  ==========  ============================  =======================

The input gradient repeats the forward operations of the weights and twice those of the attention scores (both
factors of ``Q K^T`` and of its product with V are activations), and the forward TP all-reduce. The weight gradient
repeats the operations of the weights. A vocabulary of V adds an output layer of ``V h / t`` parameters,
``2 b s h V / t`` operations and one TP all-reduce in the forward pass (of the embedding) and one in the backward
pass (of the logits' input).

Data parallelism moves the G bytes of a block's parameters (or gradients) once per collective. ZeRO stage 0
all-reduces the gradient; stages 1 and 2 reduce-scatter it and all-gather the updated parameters, both in the
weight-gradient phase; stage 3 all-gathers the parameters in the forward pass and again for the input gradient, and
reduce-scatters the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from .collective import Collective
from .errors import InputError
from .fabric import Fabric
from .workload import Communication, Layer, Phase, TrainingLoop, Workload, map_groups

DEFAULT_SPEED_FLOPS = Fraction(234 * 10**12)  #: 75 % of an A100, as measured for the dissertation (section 4.5.2).

TP, DP = "tp", "dp"


@dataclass(frozen=True)
class Transformer:
    """Transformer with its training setup."""

    name: str
    #: ``layers``, ``hidden`` and ``sequence``: number of layers, hidden size, sequence length in tokens.
    layers: int
    hidden: int
    sequence: int
    batch: int  #: Sequences per iteration over all replicas.
    precision_bytes: int = 2
    #: ``tensor_parallel`` and ``data_parallel``: degrees of TP and DP; their product is the number of NPUs.
    tensor_parallel: int = 1
    data_parallel: int = 1
    zero_stage: int = 2  #: Stage of ZeRO, from 0 (plain data parallelism) to 3.
    vocabulary: int = 0  #: Size of the vocabulary; 0 leaves embedding and output layer out.
    speed_flops: Fraction = DEFAULT_SPEED_FLOPS  #: Operations per second that an NPU attains.
    loop: TrainingLoop = TrainingLoop.NO_OVERLAP
    weight: Fraction = Fraction(1)  #: Importance in a group of workloads.

    def with_parallelism(self, tensor_parallel: int, data_parallel: int) -> Transformer:
        """Return the same model trained as HP-(TP, DP) (dissertation, section 4.2.3)."""
        return replace(self, tensor_parallel=tensor_parallel, data_parallel=data_parallel)

    def workload(self, fabric: Fabric) -> Workload:
        """Derive the workload on a fabric, by the formulas of the module's docstring."""
        spans = map_groups(fabric, {TP: self.tensor_parallel, DP: self.data_parallel})
        if self.batch % self.data_parallel:
            raise InputError(
                f"a batch of {self.batch} does not split over {self.data_parallel} replicas", place="batch"
            )
        tokens = Fraction(self.batch, self.data_parallel) * self.sequence
        h, s = self.hidden, self.sequence
        attention = self._layer(
            "attention",
            4 * h * h,
            weight_ops=8 * tokens * h * h,
            score_ops=4 * tokens * s * h,
            tokens=tokens,
            repeat=self.layers,
        )
        mlp = self._layer(
            "mlp", 8 * h * h, weight_ops=16 * tokens * h * h, score_ops=Fraction(0), tokens=tokens, repeat=self.layers
        )
        layers = [attention, mlp]
        if self.vocabulary:
            ops = 2 * tokens * h * self.vocabulary
            layers.append(
                self._layer(
                    "output", self.vocabulary * h, weight_ops=ops, score_ops=Fraction(0), tokens=tokens, repeat=1
                )
            )
        return Workload(self.name, tuple(layers), spans, self.loop, self.weight)

    def _layer(
        self, name: str, parameters: int, *, weight_ops: Fraction, score_ops: Fraction, tokens: Fraction, repeat: int
    ) -> Layer:
        """Derive one block.

        Numbers are of all TP ranks together. ``score_ops``: forward operations whose factors are both activations.
        """

        def seconds(operations: Fraction) -> Fraction:
            return operations / (self.tensor_parallel * self.speed_flops)

        activations = self._collective(Collective.ALL_REDUCE, tokens * self.hidden * self.precision_bytes, TP)
        held = Fraction(parameters * self.precision_bytes, self.tensor_parallel)
        reduce_scatter = self._collective(Collective.REDUCE_SCATTER, held, DP)
        all_gather = self._collective(Collective.ALL_GATHER, held, DP)
        if self.zero_stage == 0:
            synchronize = self._collective(Collective.ALL_REDUCE, held, DP)
        elif self.zero_stage < 3:
            synchronize = reduce_scatter + all_gather
        else:
            synchronize = reduce_scatter
        fetch = all_gather if self.zero_stage == 3 else ()
        return Layer(
            name,
            forward=Phase(seconds(weight_ops + score_ops), fetch + activations),
            input_gradient=Phase(seconds(weight_ops + 2 * score_ops), fetch + activations),
            weight_gradient=Phase(seconds(weight_ops), synchronize),
            repeat=repeat,
        )

    def _collective(self, kind: Collective, size_bytes: Fraction, group: str) -> tuple[Communication, ...]:
        """Return the collective, or nothing in a group of one."""
        degree = self.tensor_parallel if group == TP else self.data_parallel
        return (Communication(kind, Fraction(size_bytes), group),) if degree > 1 else ()
