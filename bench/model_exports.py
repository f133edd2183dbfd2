"""Whole models of examples/models as MLIR, with weights and inputs: needs torch.

Each is exported as `alcop_mlir.torch.export` does, its weights as arguments.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
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

Inputs = Callable[[int, int], tuple[Tensor, ...]]


def _images(batch: int, _: int) -> tuple[Tensor, ...]:
    return (torch.randn(batch, 3, 224, 224),)


def _rows(batch: int, _: int) -> tuple[Tensor, ...]:
    return (torch.randn(128 * batch, 784),)


def _tokens(batch: int, tokens: int) -> tuple[Tensor, ...]:
    return (torch.randint(1000, (batch, tokens)),)


def _features(width: int) -> Inputs:
    return lambda batch, tokens: (torch.randn(batch, tokens, width),)


def _step(batch: int, _: int) -> tuple[Tensor, ...]:
    keys, values = torch.randn(2, batch, 8, 1024, 128)
    return torch.randn(batch, 1, 4096), torch.tensor([500]), keys, values


# As published: models, and inputs for so many images or sequences, and tokens in each.
# A step is one token after 500 others.
REAL: dict[str, tuple[Callable[[], nn.Module], Inputs]] = {
    "mlp": (lambda: Mlp((784, 1024, 1024, 16)), _rows),
    "resnet18": (resnet18, _images),
    "resnet50": (resnet50, _images),
    "vgg16": (Vgg16, _images),
    "bert_layer": (BertLayer, _features(768)),
    "bert": (lambda: Bert(2), _tokens),
    "bert_12": (lambda: Bert(12), _tokens),
    "gpt2_block": (Gpt2Block, _features(768)),
    "gpt2": (lambda: Gpt2(2), _tokens),
    "llama_block": (LlamaBlock, _features(4096)),
    "llama_step": (lambda: LlamaStep(LlamaBlock()), _step),
}


def exported(
    name: str, dtype: str, small: bool, batch: int = 1, tokens: int = 128
) -> tuple[str, Values | None]:
    """A model's program, in one of `TYPES`; of small ones, values and results too.

    batch, tokens: of real ones; small ones have their own
    """
    if small:
        made = SMALL[name]
    else:
        model, inputs = REAL[name]
        made = Small(model, lambda: inputs(batch, tokens))
    return _exported(*made.made(TYPES[dtype]), small)


def _exported(
    model: nn.Module, inputs: tuple[Tensor, ...], small: bool
) -> tuple[str, Values | None]:
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
