"""Residual networks (He et al., arXiv 1512.03385): ResNet-18 and ResNet-50."""

from __future__ import annotations

import torch
from torch import Tensor, nn

Block = type["BasicBlock"] | type["Bottleneck"]


def convolution(inputs: int, outputs: int, window: int, stride: int = 1) -> nn.Module:
    """A convolution that keeps the image's size, but for strides; batch norm behind."""
    padding = window // 2
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, window, stride, padding, bias=False),
        nn.BatchNorm2d(outputs),
    )


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    """What is added to a block's output: its input, made as large."""
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return convolution(inputs, outputs, 1, stride)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions: the block of ResNet-18."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.first = convolution(inputs, width, 3, stride)
        self.second = convolution(width, width, 3)
        self.shortcut = shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) to images."""
        y = self.second(torch.relu(self.first(x)))
        return torch.relu(y + self.shortcut(x))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions, four times as wide outside: ResNet-50's block."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.narrow = convolution(inputs, width, 1)
        self.middle = convolution(width, width, 3, stride)
        self.widen = convolution(width, outputs, 1)
        self.shortcut = shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) to images."""
        y = torch.relu(self.middle(torch.relu(self.narrow(x))))
        return torch.relu(self.widen(y) + self.shortcut(x))


class ResNet(nn.Module):
    """A stem, four stages of `blocks` blocks each, the mean of each channel, a head."""

    def __init__(
        self,
        block: Block,
        blocks: tuple[int, ...],
        width: int = 64,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.stem = convolution(3, width, 7, stride=2)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages, channels = nn.ModuleList(), width
        for stage, count in enumerate(blocks):
            for index in range(count):
                stride = 2 if stage > 0 and index == 0 else 1
                self.stages.append(block(channels, width << stage, stride))
                channels = (width << stage) * block.expansion
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, 3, H, W) to a row of class scores each."""
        x = self.pool(torch.relu(self.stem(x)))
        for block in self.stages:
            x = block(x)
        return self.head(x.mean(dim=(2, 3)))


def resnet18(width: int = 64, classes: int = 1000) -> ResNet:
    """ResNet-18; `width` is that of the first stage."""
    return ResNet(BasicBlock, (2, 2, 2, 2), width, classes)


def resnet50(width: int = 64, classes: int = 1000) -> ResNet:
    """ResNet-50; `width` is that of the first stage's 3x3 convolutions."""
    return ResNet(Bottleneck, (3, 4, 6, 3), width, classes)
