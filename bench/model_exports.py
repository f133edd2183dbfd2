"""Whole models of examples/models as MLIR, with weights and inputs: needs torch.

Each is exported as `alcop_mlir.torch.export` does, its weights as arguments.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import numpy as np
import torch
from model_runs import Values
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "examples" / "models"))

from bert import Bert, BertLayer  # noqa: E402
from gpt2 import Gpt2, Gpt2Block  # noqa: E402
from llama import LlamaBlock, LlamaStep  # noqa: E402
from mlp import Mlp  # noqa: E402
from resnet import resnet18, resnet50  # noqa: E402
from small import SMALL, TYPES, Small  # noqa: E402
from vgg import Vgg16  # noqa: E402

from alcop_mlir.torch.export import array_of, traced  # noqa: E402


def _image() -> tuple[Tensor, ...]:
    return (torch.randn(1, 3, 224, 224),)


def _tokens() -> tuple[Tensor, ...]:
    return (torch.randint(1000, (1, 128)),)


def _features(width: int) -> tuple[Tensor, ...]:
    return (torch.randn(1, 128, width),)


def _step() -> tuple[Tensor, ...]:
    keys, values = torch.randn(2, 1, 8, 1024, 128)
    return torch.randn(1, 1, 4096), torch.tensor([500]), keys, values


# As published: one image, 128 tokens, or one token after 500 others.
REAL = {
    "mlp": Small(lambda: Mlp((784, 1024, 1024, 16)), lambda: (torch.randn(128, 784),)),
    "resnet18": Small(resnet18, _image),
    "resnet50": Small(resnet50, _image),
    "vgg16": Small(Vgg16, _image),
    "bert_layer": Small(BertLayer, lambda: _features(768)),
    "bert": Small(lambda: Bert(2), _tokens),
    "bert_12": Small(lambda: Bert(12), _tokens),
    "gpt2_block": Small(Gpt2Block, lambda: _features(768)),
    "gpt2": Small(lambda: Gpt2(2), _tokens),
    "llama_block": Small(LlamaBlock, lambda: _features(4096)),
    "llama_step": Small(lambda: LlamaStep(LlamaBlock()), _step),
}


def exported(name: str, dtype: str, small: bool) -> tuple[str, Values | None]:
    """A model's program, in one of `TYPES`; of small ones, values and results too."""
    model, inputs = (SMALL if small else REAL)[name].made(TYPES[dtype])
    if small:
        _randomize(model)
    graph, weights = traced(model, inputs)
    if not small:
        return graph.text(), None
    left = iter(inputs)
    arguments = [
        weights[name] if name in weights else array_of(next(left))
        for name in graph.names
    ]
    return graph.text(), Values(arguments, _results(model, inputs))


def _randomize(model: nn.Module) -> None:
    """Draw what torch leaves at 0 and 1: scales, shifts, means and variances."""
    for one in model.state_dict().values():
        if one.is_floating_point() and one.dim() == 1:
            one.uniform_(0.5, 1.5)


def _results(model: nn.Module, inputs: tuple[Tensor, ...]) -> list[np.ndarray]:
    """In f64."""
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    with torch.no_grad():
        found = copy.deepcopy(model).double()(*wide)
    return [one.numpy() for one in (found if isinstance(found, tuple) else (found,))]
