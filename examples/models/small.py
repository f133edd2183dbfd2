"""The models of this folder in sizes that the emulator runs in seconds.

    python examples/models/small.py FOLDER [TYPE ...]

writes each as torch-mlir exports it, to `FOLDER/NAME_TYPE.mlir`: linalg on tensors,
weights as arguments, nothing of ours in between. TYPE is f16, bf16 or f32; none is all.
Beside it, `NAME_TYPE.npz` has the results, by torch in f64, for arguments as
`small_values.py` draws them.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from bert import Bert, BertLayer
from gpt2 import Gpt2, Gpt2Block
from llama import LlamaBlock, LlamaStep
from mlp import Mlp
from resnet import BasicBlock, Bottleneck, resnet18, resnet50
from small_values import drawn
from torch import Tensor, nn
from vgg import Vgg16

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
TOKENS, WIDTH, VOCABULARY = 32, 64, 128


@dataclass(frozen=True)
class Small:
    """How to make a model, and inputs for it; floats are converted by `made`."""

    model: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]

    def made(self, dtype: torch.dtype) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """The model with random weights, for inference, and inputs; by a fixed seed."""
        torch.manual_seed(0)
        model = self.model().to(dtype).eval()
        inputs = (x.to(dtype) if x.is_floating_point() else x for x in self.inputs())
        return model, tuple(inputs)


def _tokens() -> tuple[Tensor, ...]:
    return (torch.randint(VOCABULARY, (2, TOKENS)),)


def _features() -> tuple[Tensor, ...]:
    return (torch.randn(2, TOKENS, WIDTH),)


def _masked_features() -> tuple[Tensor, ...]:
    hidden = torch.rand(2, 1, 1, TOKENS) < 0.25
    return *_features(), torch.zeros(hidden.shape).masked_fill(hidden, -1e4)


def _step() -> tuple[Tensor, ...]:
    keys, values = torch.randn(2, 2, 2, TOKENS, WIDTH // 4)
    return torch.randn(2, 1, WIDTH), torch.tensor([5]), keys, values


def _llama() -> LlamaBlock:
    return LlamaBlock(WIDTH, heads=4, groups=2, hidden=128)


SMALL = {
    "mlp": Small(Mlp, lambda: (torch.randn(32, 64),)),
    "resnet_basic": Small(
        lambda: BasicBlock(16, 32, 2), lambda: (torch.randn(1, 16, 16, 16),)
    ),
    "resnet_bottleneck": Small(
        lambda: Bottleneck(16, 16, 2), lambda: (torch.randn(1, 16, 16, 16),)
    ),
    "resnet18": Small(lambda: resnet18(16, 16), lambda: (torch.randn(1, 3, 32, 32),)),
    "resnet50": Small(lambda: resnet50(16, 16), lambda: (torch.randn(1, 3, 32, 32),)),
    "vgg16": Small(
        lambda: Vgg16(16, image=32, hidden=64, classes=16),
        lambda: (torch.randn(1, 3, 32, 32),),
    ),
    "bert_layer": Small(lambda: BertLayer(WIDTH, 2, 128), _features),
    "bert_layer_masked": Small(lambda: BertLayer(WIDTH, 2, 128), _masked_features),
    "bert": Small(lambda: Bert(2, WIDTH, 2, 128, VOCABULARY, 64), _tokens),
    "gpt2_block": Small(lambda: Gpt2Block(WIDTH, 2), _features),
    "gpt2": Small(lambda: Gpt2(2, WIDTH, 2, VOCABULARY, 64), _tokens),
    "llama_block": Small(_llama, _features),
    "llama_step": Small(lambda: LlamaStep(_llama()), _step),
}


def exported(
    model: nn.Module, inputs: tuple[Tensor, ...]
) -> tuple[str, list[np.ndarray]]:
    """MLIR as torch-mlir makes it by its own means, and results in f64."""
    from torch_mlir import fx
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    with torch.no_grad():
        program = torch.export.export(model, inputs)
        program = program.run_decompositions(get_decomposition_table())
    graph = program.graph_module
    text = str(fx.stateless_fx_import(graph, output_type="linalg-on-tensors"))
    return text, results(model, inputs, program)


def results(
    model: nn.Module,
    inputs: tuple[Tensor, ...],
    program: torch.export.ExportedProgram,
) -> list[np.ndarray]:
    """Those of `model` in f64, for arguments of `program` as `drawn` gives them."""
    specs = program.graph_signature.input_specs
    names = [spec.target for spec in specs if spec.target is not None]
    weights = [program.state_dict[name] for name in names]
    values = [_drawn(*one) for one in enumerate([*weights, *inputs])]
    model = copy.deepcopy(model).double()
    model.load_state_dict(dict(zip(names, values, strict=False)))
    with torch.no_grad():
        found = model(*values[len(names) :])
    every = found if isinstance(found, tuple) else (found,)
    return [one.numpy() for one in every]


def _drawn(number: int, like: Tensor) -> Tensor:
    """The values of an argument of that type, in f64 if it is a float."""
    dtype = str(like.dtype).removeprefix("torch.")
    drew = drawn(number, like.shape, dtype.replace("bfloat16", "float32"))
    found = torch.from_numpy(drew).to(like.dtype)
    return found.double() if found.is_floating_point() else found


def main(folder: str, *types: str) -> None:
    """Write all models to `folder`."""
    for name, small in SMALL.items():
        for dtype in types or TYPES:
            text, values = exported(*small.made(TYPES[dtype]))
            Path(folder, f"{name}_{dtype}.mlir").write_text(text, "utf-8")
            rounded = [value.astype(np.float32) for value in values]
            np.savez_compressed(Path(folder, f"{name}_{dtype}.npz"), *rounded)


if __name__ == "__main__":
    main(*sys.argv[1:])
