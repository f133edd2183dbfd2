"""Whole models of examples/models as MLIR, with weights and inputs: needs torch.

Each is exported as `alcop_mlir.torch.export` does, its weights as arguments.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "examples" / "models"))

from bert import Bert, BertLayer  # noqa: E402
from gpt2 import Gpt2, Gpt2Block  # noqa: E402
from llama import LlamaBlock, LlamaStep  # noqa: E402
from mlp import Mlp  # noqa: E402
from resnet import resnet18, resnet50  # noqa: E402
from small import SMALL, TYPES, Small  # noqa: E402
from vgg import Vgg16  # noqa: E402

from alcop_mlir.torch.export import traced  # noqa: E402


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


def mlir(name: str, dtype: str, small: bool) -> str:
    """The program of a model, in one of `TYPES`; KeyError for unknown names."""
    sizes = SMALL if small else REAL
    model, inputs = sizes[name].made(TYPES[dtype])
    graph, _ = traced(model, inputs)
    return graph.text()
