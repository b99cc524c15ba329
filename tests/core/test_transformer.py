"""Quantities derived from the description of a transformer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from cwb.core.collective import Collective
from cwb.core.errors import InputError
from cwb.core.fabric import parse_fabric
from cwb.core.transformer import Model, Transformer
from cwb.core.workload import Workload

FABRIC = parse_fabric("RI(4)_FC(8)_RI(4)_SW(32)")


def make(name: str, layers: int, hidden: int, sequence: int, batch: int, tp: int, dp: int, **more: Any) -> Transformer:
    """Make a transformer without ZeRO, trained as HP-(tp, dp)."""
    shape = {"layers": layers, "hidden": hidden, "sequence": sequence, "batch": batch, "zero_stage": 0}
    return Transformer(name, Model.model_validate({**shape, **more}), tp, dp)


def change(transformer: Transformer, **more: Any) -> Transformer:
    """Change fields of the model."""
    return replace(transformer, model=transformer.model.model_copy(update=more))


#: Two layers, as LIBRA's published workloads have them.
GPT_3 = make("gpt-3", 2, 12288, 2048, 16 * 256, 16, 256)
MSFT_1T = make("msft-1t", 2, 24576, 2048, 8 * 32, 128, 32)
TURING_NLG = make("turing-nlg", 2, 4256, 1024, 8 * 4096, 1, 4096)

#: Small enough for a pocket calculator: t = 4, b = 3 sequences per replica, s = 8, h = 32, p = 2.
SMALL = make("small", 5, 32, 8, 6, 4, 2, speed=Fraction(1000))
SMALL_FABRIC = parse_fabric("RI(4)_SW(2)")


def moved_bytes(workload: Workload) -> dict[tuple[str, str, Collective], Fraction]:
    """Add up bytes by phase, group and collective over all layers."""
    total: dict[tuple[str, str, Collective], Fraction] = defaultdict(Fraction)
    for layer in workload.layers:
        for phase in ("forward", "input_gradient", "weight_gradient"):
            for c in getattr(layer, phase).communication:
                total[phase, c.group, c.collective] += layer.repeat * c.size_bytes
    return dict(total)


@pytest.mark.parametrize(
    ("transformer", "activations", "gradients"),
    [(GPT_3, 805306368, 452984832), (MSFT_1T, 805306368, 226492416)],
    ids=["gpt-3", "msft-1t"],
)
def test_bytes_are_those_of_the_published_workloads(transformer: Transformer, activations: int, gradients: int) -> None:
    """A TP all-reduce and the gradients of two layers have exactly the bytes of LIBRA's inputs for GPT-3 and
    MSFT-1T."""
    workload = transformer.workload(FABRIC)
    sizes = {c.size_bytes for layer in workload.layers for c in layer.forward.communication}
    assert sizes == {activations}
    assert moved_bytes(workload)["weight_gradient", "dp", Collective.ALL_REDUCE] == gradients


def test_gradients_of_turing_nlg_are_the_published_ones() -> None:
    """TP-1 communicates nothing but gradients: 869,449,728 bytes for two layers."""
    assert moved_bytes(TURING_NLG.workload(FABRIC)) == {("weight_gradient", "dp", Collective.ALL_REDUCE): 869449728}


def test_computation_agrees_with_the_closed_forms() -> None:
    """Forward, input gradient and weight gradient take the operations of the page on workloads, over TP and speed."""
    attention, mlp = SMALL.workload(SMALL_FABRIC).layers
    b, s, h, t, speed = 3, 8, 32, 4, 1000
    weights, scores = 8 * b * s * h * h, 4 * b * s * s * h
    assert attention.forward.compute_s == Fraction(weights + scores, t * speed)
    assert attention.input_gradient.compute_s == Fraction(weights + 2 * scores, t * speed)
    assert attention.weight_gradient.compute_s == Fraction(weights, t * speed)
    for phase in (mlp.forward, mlp.input_gradient, mlp.weight_gradient):
        assert phase.compute_s == Fraction(16 * b * s * h * h, t * speed)
    assert attention.repeat == mlp.repeat == 5


def test_the_whole_model_does_six_operations_per_parameter_and_token() -> None:
    """Without the attention scores, the three phases together are 6 x parameters x tokens, as everybody counts."""
    workload = GPT_3.workload(FABRIC)
    operations = sum(
        getattr(layer, phase).compute_s * layer.repeat
        for layer in workload.layers
        for phase in ("forward", "input_gradient", "weight_gradient")
    ) * (16 * GPT_3.model.speed)
    h, s, tokens = 12288, 2048, 16 * 2048
    parameters = 2 * 12 * h * h
    scores = 2 * 3 * 4 * tokens * s * h
    assert operations == 6 * parameters * tokens + scores


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        (0, {("weight_gradient", "dp", Collective.ALL_REDUCE): 1}),
        (
            1,
            {
                ("weight_gradient", "dp", Collective.REDUCE_SCATTER): 1,
                ("weight_gradient", "dp", Collective.ALL_GATHER): 1,
            },
        ),
        (
            2,
            {
                ("weight_gradient", "dp", Collective.REDUCE_SCATTER): 1,
                ("weight_gradient", "dp", Collective.ALL_GATHER): 1,
            },
        ),
        (
            3,
            {
                ("forward", "dp", Collective.ALL_GATHER): 1,
                ("input_gradient", "dp", Collective.ALL_GATHER): 1,
                ("weight_gradient", "dp", Collective.REDUCE_SCATTER): 1,
            },
        ),
    ],
)
def test_zero_stages_move_the_parameters_as_documented(
    stage: int, expected: dict[tuple[str, str, Collective], int]
) -> None:
    """Every DP collective of a stage moves all 12 h^2 p / t bytes of a layer once."""
    held = 5 * 12 * 32 * 32 * 2 // 4
    found = moved_bytes(change(SMALL, zero_stage=stage).workload(SMALL_FABRIC))
    data_parallel = {key: size for key, size in found.items() if key[1] == "dp"}
    assert data_parallel == {key: held * times for key, times in expected.items()}


def test_both_passes_reduce_activations_twice_a_layer() -> None:
    """The TP all-reduces of a pass are b s h p bytes for attention and for the MLP, in each of five layers."""
    found = moved_bytes(SMALL.workload(SMALL_FABRIC))
    for phase in ("forward", "input_gradient"):
        assert found[phase, "tp", Collective.ALL_REDUCE] == 5 * 2 * (3 * 8 * 32 * 2)


def test_a_vocabulary_adds_an_output_layer() -> None:
    """A vocabulary of 100 adds V h parameters, 2 b s h V operations and one all-reduce in each pass, once."""
    output = change(SMALL, vocabulary=100).workload(SMALL_FABRIC).layers[-1]
    assert (output.name, output.repeat) == ("output", 1)
    assert output.forward.compute_s == Fraction(2 * 3 * 8 * 32 * 100, 4 * 1000)
    assert [c.size_bytes for c in output.forward.communication] == [3 * 8 * 32 * 2]
    assert [c.size_bytes for c in output.weight_gradient.communication] == [100 * 32 * 2 // 4]


def test_a_group_of_one_communicates_nothing() -> None:
    """TP-8 x DP-1 has no gradients to synchronize, TP-1 x DP-8 no activations."""
    alone = moved_bytes(SMALL.with_parallelism(8, 1).workload(SMALL_FABRIC))
    assert {group for _, group, _ in alone} == {"tp"}
    spread = moved_bytes(change(SMALL, batch=8).with_parallelism(1, 8).workload(SMALL_FABRIC))
    assert {group for _, group, _ in spread} == {"dp"}


@pytest.mark.parametrize(
    ("transformer", "reason"),
    [
        (change(SMALL, batch=7), "batch: a batch of 7 does not split over 2 replicas"),
        (SMALL.with_parallelism(4, 4), "tp=4 x dp=4 is 16 NPUs"),
    ],
)
def test_degrees_and_batch_must_fit(transformer: Transformer, reason: str) -> None:
    """A batch that does not split, and degrees that do not multiply to the NPUs, are refused."""
    with pytest.raises(InputError, match=reason):
        transformer.workload(SMALL_FABRIC)
