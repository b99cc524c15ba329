"""Workload files computed from the shapes of models: GPT-2, GPT-3 in a pipeline, GNMT, ResNet-50, Switch.

    python benchmarks/workload_files.py

A product of an (x by y) with a (y by z) matrix takes 2xyz operations, a convolution two for each multiplication. The
input gradient repeats the operations of the weights and twice those of products of activations, the weight gradient
those of the weights. Times are operations over a speed that is stated; normalizations, activations and the optimizer
are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "instances" / "workloads"

#: Operations per second: 75 % of an A100's peak without and with tensor cores, and bytes of a value there.
FP32, FP16 = (14_625 * 10**9, 4), (234 * 10**12, 2)
SAID = {
    FP32: "75 % of an A100's 19.5 TFLOPS in fp32",
    FP16: "234 TFLOPS, 75 % of an A100 in fp16 (dissertation, section 4.5.2)",
}

Layer = dict[str, Any]


def collective(kind: str, size: int, group: str) -> dict[str, str]:
    """A collective as files say it."""
    return {"collective": kind, "size": f"{size} B", "group": group}


class Model:
    """Layers of a model at a speed.

    Parameters
    ----------
    speed : tuple of int
        Operations per second, and bytes of a value.
    tensor_parallel : int
        NPUs that share a layer.
    """

    def __init__(self, speed: tuple[int, int], tensor_parallel: int = 1) -> None:
        self.speed, self.bytes = speed
        self.tp = tensor_parallel
        self.layers: list[Layer] = []

    def add(
        self,
        name: str,
        parameters: int,
        *,
        operations: int | None = None,
        tokens: int = 0,
        scores: int = 0,
        repeat: int = 1,
        local: bool = False,
        forward: list[dict[str, str]] | None = None,
        backward: list[dict[str, str]] | None = None,
    ) -> None:
        """Add a layer.

        Parameters
        ----------
        name : str
            Of the layer.
        parameters : int
            Weights, whose gradients are reduced unless they are ``local``.
        operations : int, optional
            With weights in a forward pass; twice the parameters for each token unless given.
        tokens, scores : int
            Tokens, and operations in which both factors are activations.
        repeat : int
            How often.
        local : bool
            Whether the weights are on one NPU alone.
        forward, backward : list, optional
            Collectives after the forward pass and after the input gradient.
        """
        weights = 2 * tokens * parameters if operations is None else operations
        phases = {
            "forward": (weights + scores, forward or []),
            "input_gradient": (weights + 2 * scores, backward or []),
            "weight_gradient": (
                weights,
                [] if local else [collective("all_reduce", parameters * self.bytes // self.tp, "dp")],
            ),
        }
        layer: Layer = {"name": name}
        if repeat > 1:
            layer["repeat"] = repeat
        for phase, (ops, communication) in phases.items():
            said: dict[str, Any] = {}
            if nanoseconds := round(ops * 10**9 / (self.speed * self.tp)):
                said["compute"] = f"{nanoseconds} ns"
            if communication:
                said["communication"] = [c for c in communication if not c["size"].startswith("0 ")]
            if said.get("compute") or said.get("communication"):
                layer[phase] = {key: value for key, value in said.items() if value}
        self.layers.append(layer)


def gpt_2(name: str, layers: int, hidden: int, batch: int) -> dict[str, Any]:
    """GPT-2, data parallel, with 1,024 tokens in a sequence."""
    model, sequence, vocabulary = Model(FP32), 1024, 50257
    tokens = batch * sequence
    model.add("embedding", (vocabulary + sequence) * hidden, operations=0)
    model.add("attention", 4 * hidden**2, tokens=tokens, scores=4 * tokens * sequence * hidden, repeat=layers)
    model.add("mlp", 8 * hidden**2, tokens=tokens, repeat=layers)
    model.add("logits", 0, operations=2 * tokens * hidden * vocabulary)
    sequences = "sequence" if batch == 1 else "sequences"
    shape = f"{layers} layers, hidden size {hidden}, {batch} {sequences} of 1,024 tokens on each NPU"
    return file(name, f"GPT-2, data parallel: {shape}.", "Radford et al. 2019, table 2", FP32, model)


def gpt_3() -> dict[str, Any]:
    """GPT-3 as HP-(8, ...) in a pipeline of 8 stages, with 8 sequences for each replica."""
    model, hidden, sequence, batch = Model(FP16, 8), 12288, 2048, 8
    tokens = batch * sequence
    size = tokens * hidden * model.bytes
    reduced, sent = collective("all_reduce", size, "tp"), collective("point_to_point", size, "pp")
    scores = 4 * tokens * sequence * hidden
    both = {"forward": [reduced, sent], "backward": [reduced, sent]}
    model.add("attention", 4 * hidden**2, tokens=tokens, scores=scores, repeat=96, **both)
    model.add("mlp", 8 * hidden**2, tokens=tokens, repeat=96, **both)
    text = (
        "GPT-3, 175 billion parameters, TP-8 in a pipeline of 8 stages, 8 sequences of 2,048 tokens for each replica."
    )
    found = file("gpt-3-pipeline", text, "Brown et al. 2020, table 2.1", FP16, model)
    return {**found, "tensor_parallel": 8, "pipeline_parallel": 8}


def gnmt() -> dict[str, Any]:
    """GNMT, data parallel: LSTM layers of 1,024 with attention."""
    model, hidden, vocabulary, tokens = Model(FP16), 1024, 32000, 128 * 25

    def lstm(name: str, width: int, *, ways: int = 1, repeat: int = 1) -> None:
        model.add(name, ways * 4 * hidden * (width + hidden), tokens=tokens, repeat=repeat)

    model.add("source embedding", vocabulary * hidden, operations=0)
    lstm("encoder 1", hidden, ways=2)
    lstm("encoder 2", 2 * hidden)
    lstm("encoder 3 to 8", hidden, repeat=6)
    model.add("target embedding", vocabulary * hidden, operations=0)
    lstm("decoder 1", hidden)
    model.add("attention", 2 * hidden**2, tokens=tokens, scores=4 * tokens * 25 * hidden)
    lstm("decoder 2 to 8", 2 * hidden, repeat=7)
    model.add("logits", vocabulary * hidden, tokens=tokens)
    text = "GNMT, data parallel: 8 encoder and 8 decoder layers of 1,024, 128 sentences of 25 words on each NPU."
    return file("gnmt", text, "Wu et al. 2016, sections 3 and 8.3; 25 words is an assumption", FP16, model)


def resnet_50() -> dict[str, Any]:
    """ResNet-50 for images of 224 by 224, data parallel, with the gradients of every layer."""
    model, batch = Model(FP32), 64

    def conv(name: str, kernel: int, before: int, after: int, side: int) -> None:
        weights = kernel**2 * before * after
        model.add(name, weights, operations=2 * weights * side**2 * batch)

    conv("conv1", 7, 3, 64, 112)
    before = 64
    for stage, (blocks, width, side) in enumerate([(3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7)], start=2):
        for block in range(1, blocks + 1):
            first = side * 2 if block == 1 and stage > 2 else side
            conv(f"conv{stage}_{block}a", 1, before, width, first)
            conv(f"conv{stage}_{block}b", 3, width, width, side)
            conv(f"conv{stage}_{block}c", 1, width, 4 * width, side)
            if block == 1:
                conv(f"conv{stage}_shortcut", 1, before, 4 * width, side)
            before = 4 * width
    model.add("fc", 2048 * 1000, tokens=batch)
    text = (
        "ResNet-50, data parallel, 64 images on each NPU, "
        "with the gradients of every layer (resnet-50 has them in one)."
    )
    return file("resnet-50-layers", text, "He et al. 2016, table 1", FP32, model)


def switch(
    name: str, text: str, npus: int, blocks: int, width: int, inner: int, hidden: int, experts: int, *, dense: bool
) -> dict[str, Any]:
    """A Switch Transformer, its experts over all NPUs: 2,048 sequences of 512 tokens, 114 to predict.

    Parameters
    ----------
    name, text : str
        Of the file.
    npus : int
        NPUs that share the batch.
    blocks : int
        Layers with experts of the encoder, and of the decoder; with ``dense``, as many others before each.
    width, inner, hidden, experts : int
        Of the model, of its attention, of the feed-forward layers, and number of experts.
    """
    model = Model(FP32)
    model.add("embedding", 32128 * width, operations=0)
    batch, source = 2048 // npus, 512
    for part, length in (("encoder", source), ("decoder", 114)):
        tokens = batch * length
        routed = [collective("all_to_all", tokens * width * model.bytes, "ep")]

        def attention(of: str, other: int, tokens: int = tokens) -> None:
            model.add(of, 4 * width * inner, tokens=tokens, scores=4 * tokens * other * inner, repeat=blocks)

        for kind in ("dense", "sparse") if dense else ("sparse",):
            attention(f"{part} {kind} attention", length)
            if part == "decoder":
                attention(f"{part} {kind} cross-attention", source)
            if kind == "dense":
                model.add(f"{part} mlp", 2 * width * hidden, tokens=tokens, repeat=blocks)
                continue
            model.add(f"{part} router", width * experts, tokens=tokens, repeat=blocks, forward=routed)
            to = {"forward": routed, "backward": routed}
            model.add(f"{part} experts", 2 * width * hidden, tokens=tokens, local=True, repeat=blocks, **to)
            model.add(f"{part} combined", 0, tokens=tokens, repeat=blocks, backward=routed)
        model.add(f"{part} norm", 0, operations=0 if part == "encoder" else 2 * tokens * width * 32128)
    of = "Fedus et al. 2022, tables 1 and 9 and section 2; as many tokens for every expert, capacity factor 1"
    return {**file(name, text, of, FP32, model), "expert_parallel": "all"}


def file(name: str, description: str, source: str, speed: tuple[int, int], model: Model) -> dict[str, Any]:
    """A workload file."""
    source = f"Shape: {source}. Computed by benchmarks/workload_files.py at {SAID[speed]}"
    head = {"schema": "cwb-workload/1", "name": name, "description": description, "source": source}
    return {**head, "layers": model.layers}


def files() -> Iterator[dict[str, Any]]:
    """All of them."""
    yield gpt_2("gpt-2", 12, 768, 8)
    yield gpt_2("gpt-2-medium", 24, 1024, 4)
    yield gpt_2("gpt-2-large", 36, 1280, 1)
    yield gpt_3()
    yield gnmt()
    yield resnet_50()
    base = "Switch-Base, 14.7 billion parameters, 256 experts over all of 256 NPUs, 8 sequences on each."
    yield switch("switch-base-256", base, 256, 6, 768, 768, 3072, 256, dense=True)
    c = "Switch-C, 1.6 trillion parameters, 2,048 experts over all of 1,024 NPUs, 2 sequences on each."
    yield switch("switch-c-1024", c, 1024, 15, 2080, 2048, 6144, 2048, dense=False)


def text_of(workload: dict[str, Any]) -> str:
    """The text of a file, a phase on a line."""
    lines = ["{"]
    for key, value in workload.items():
        if key == "layers":
            continue
        lines.append(f"  {json.dumps(key)}: {json.dumps(value)},")
    lines.append('  "layers": [')
    for index, layer in enumerate(workload["layers"]):
        inside = [f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in layer.items()]
        lines += ["    {", ",\n".join(inside), "    }" + "," * (index + 1 < len(workload["layers"]))]
    return "\n".join([*lines, "  ]", "}"]) + "\n"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    for each in files():
        (FOLDER / f"{each['name']}.json").write_text(text_of(each))
