"""VGG-16 (Simonyan and Zisserman, arXiv 1409.1556)."""

from __future__ import annotations

from torch import Tensor, nn

# Convolutions of each stage, and how many times the first width they have.
STAGES = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))


class Vgg16(nn.Module):
    """13 convolutions of 3x3 in five stages, and three linear layers."""

    def __init__(
        self, width: int = 64, image: int = 224, hidden: int = 4096, classes: int = 1000
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for count, times in STAGES:
            for _ in range(count):
                layers += [nn.Conv2d(channels, width * times, 3, padding=1), nn.ReLU()]
                channels = width * times
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        pixels = (image // 2 ** len(STAGES)) ** 2
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(channels * pixels, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, 3, H, W) to a row of class scores each."""
        return self.head(self.features(x))
