"""Which blocks run together, and what of their tiles is not in L2.

Blocks start in the order of the grid, as many as the machine holds. Those that run
together read a panel (the rows of A, or the columns of B, of a row or column of blocks)
once from DRAM. L2 keeps the panels that were used last.
"""

from __future__ import annotations

from dataclasses import dataclass

from yardstick.kernel import Kernel

_WAVES = 10  # that are followed; later ones are as the mean of the last half


@dataclass(frozen=True)
class Wave:
    """Blocks that run together.

    blocks: how many
    missed: the part of the bytes they read, each block by itself, that comes from DRAM
    cold: the part of the distinct bytes that is not in L2 yet
    """

    blocks: int
    missed: float
    cold: float


def waves(kernel: Kernel, at_once: int, l2_size: float) -> list[tuple[int, Wave]]:
    """How often each wave runs: full ones, one by one, then the last."""
    total = kernel.blocks
    full, rest = divmod(total, at_once)
    kept: dict[tuple[str, int, int], float] = {}
    found = [
        _wave(kernel, number * at_once, at_once, kept, l2_size)
        for number in range(min(full, _WAVES))
    ]
    ended = [(1, wave) for wave in found]
    if full > _WAVES:
        later = found[_WAVES // 2 :]
        mean = Wave(
            at_once,
            sum(wave.missed for wave in later) / len(later),
            sum(wave.cold for wave in later) / len(later),
        )
        ended.append((full - _WAVES, mean))
    if rest:
        ended.append((1, _wave(kernel, full * at_once, rest, kept, l2_size)))
    return ended


def _wave(
    kernel: Kernel,
    first: int,
    count: int,
    kept: dict[tuple[str, int, int], float],
    l2_size: float,
) -> Wave:
    """One wave; `kept` are the panels in L2, and their bytes, the oldest first."""
    length = kernel.k / kernel.parts * kernel.size
    a, b = kernel.block[0] * length, kernel.block[1] * length
    read = distinct = cold = 0.0
    seen: dict[tuple[str, int, int], float] = {}
    for number in range(first, first + count):
        row, column, plane = place(kernel, number)
        seen["A", row, plane] = a
        seen["B", column, plane] = b
    read = count * (a + b)
    for panel, size in seen.items():
        distinct += size
        if panel in kept:
            del kept[panel]
        else:
            cold += size
        kept[panel] = size
    room = sum(kept.values())
    while room > l2_size and len(kept) > 1:
        room -= kept.pop(next(iter(kept)))
    return Wave(count, cold / read, cold / distinct)


def place(kernel: Kernel, number: int) -> tuple[int, int, int]:
    """Row and column of a block, and its matrix and part of K together."""
    plane, inside = divmod(number, kernel.rows * kernel.columns)
    if kernel.group == 1:
        return inside // kernel.columns, inside % kernel.columns, plane
    group, inside = divmod(inside, kernel.group * kernel.columns)
    high = min(kernel.group, kernel.rows - group * kernel.group)
    return group * kernel.group + inside % high, inside // high, plane
