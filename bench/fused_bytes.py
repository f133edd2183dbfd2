"""Bytes of global memory that the best fusion of a model moves, by hand.

Each kernel reads its inputs and weights once, and writes its result once, all in two
bytes an element. Kernels are contractions with what follows them element by element,
attention as one, row reductions as one, and pools:

    encoder layer   q, k, v of one product; attention; output; norm; up; down; norm
    ResNet-50       53 convolutions; pool; mean; product: 56

A transformer with gates multiplies by two matrices on the way up, and reads what both
make once. What `least_bytes.py` counts is less: there nothing is between kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

ELEMENT = 2  # bytes


@dataclass(frozen=True)
class Block:
    """A block of a transformer; widths in elements.

    kept: of keys, and of values
    ups:  matrices that widen: 2 with gates
    """

    width: int
    hidden: int
    kept: int
    ups: int = 1

    def bytes(self, tokens: int) -> int:
        """For so many tokens, of all sequences together."""
        rows, joined = tokens * self.width, self.width + 2 * self.kept
        weights = self.width * (joined + self.width + (self.ups + 1) * self.hidden)
        packed = tokens * joined
        hidden = tokens * self.hidden
        moved = (
            rows + packed,  # q, k, v
            packed + rows,  # attention
            3 * rows,  # output, and the sum with its input
            rows + hidden,  # up
            hidden + 2 * rows,  # down, and the sum with its input
            2 * 2 * rows,  # norms
        )
        return ELEMENT * (weights + sum(moved))


BLOCKS = {
    "bert_layer": Block(768, 3072, 768),
    "gpt2_block": Block(768, 3072, 768),
    "llama_block": Block(4096, 14336, 1024, ups=2),
}
# Bottlenecks of ResNet-50: channels within, how many, and the stride of the first.
_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def resnet50_bytes(images: int) -> int:
    """For images of 224 x 224 (He et al., arXiv 1512.03385).

    The second convolution of a bottleneck has its stride, as in torchvision.
    """
    weights, moved = 0, 0
    size, channels = 112, 64
    weights += 3 * 64 * 49
    moved += 3 * 224 * 224 + channels * size * size  # the first convolution
    moved += channels * (size * size + 56 * 56)  # pool
    size = 56
    for width, count, stride in _STAGES:
        for number in range(count):
            before, size = size, size // (stride if number == 0 else 1)
            pixels, made = size * size, 4 * width
            if number == 0:  # the shortcut
                weights += channels * made
                moved += channels * before * before + made * pixels
            weights += channels * width + width * width * 9 + width * made
            moved += channels * before * before + width * before * before
            moved += width * before * before + width * pixels
            moved += width * pixels + 2 * made * pixels  # and the sum with the shortcut
            channels = made
    moved += channels * (size * size + 1)  # mean
    weights += channels * 1000
    return ELEMENT * (weights + images * moved)


def fused_bytes(model: str, batch: int, tokens: int) -> int | None:
    """Of a model as published; None for those that nobody has counted."""
    if model in BLOCKS:
        return BLOCKS[model].bytes(batch * tokens)
    return resnet50_bytes(batch) if model == "resnet50" else None
