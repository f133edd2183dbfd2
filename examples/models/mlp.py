"""A multi-layer perceptron: linear layers with ReLU between them."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


class Mlp(nn.Module):
    """`widths` are the features of the input, of each hidden layer, of the output."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 128, 32)) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(k, n) for k, n in pairwise(widths))

    def forward(self, x: Tensor) -> Tensor:
        """A row of features each to a row of outputs."""
        *hidden, last = self.layers
        for layer in hidden:
            x = torch.relu(layer(x))
        return last(x)
