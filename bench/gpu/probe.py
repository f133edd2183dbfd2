"""One probe: a small kernel, what it is given, and how its results are compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.target import WARP_SIZE
from bench.gpu.device import Device
from bench.gpu.maps import Map

FOLDER = Path(__file__).parent / "probes"
# Sixteen terms of up to 1 and an initial value of up to 8, added in any order,
# truncated or not: a few units in the last place of 24.
SUM_ERROR = 2.0**-17

Words = np.ndarray[Any, Any]  # of uint32


@dataclass(frozen=True)
class Probe:
    """One kernel with its inputs, arrays of uint32, and the words that it writes.

    forms: what each part of the result, split evenly, is called and how it is compared:
        "bits", or a float type whose NaN are all alike; "accumulators" allows for terms
        added in another order
    capability: of the oldest GPU that has the instruction
    only: whether no other GPU has it
    maps: tensor maps, which the kernel is given between the inputs and the result
    before: the word that the result is full of before
    """

    name: str
    file: str
    inputs: tuple[Words, ...]
    words: int
    forms: tuple[tuple[str, str], ...]
    blocks: int = 1
    threads: int = WARP_SIZE
    capability: int = 80
    only: bool = False
    maps: tuple[Map, ...] = ()
    before: int = 0xFFFFFFFF

    def is_for(self, capability: int) -> bool:
        """Whether GPUs of that capability have the instruction."""
        if self.only:
            return capability == self.capability
        return capability >= self.capability

    @property
    def ptx(self) -> str:
        """The text that its kernel is in."""
        return (FOLDER / f"{self.file}.ptx").read_text()

    def emulated(self) -> Words:
        """The emulator's result."""
        found = self._blank()
        arrays = [*(words.copy() for words in self.inputs), found]
        maps = [one.of(arrays[one.array]) for one in self.maps]
        arguments = [*arrays[:-1], *maps, found]
        kernel = self.name.split(":")[0]
        grid, block = (self.blocks, 1, 1), (self.threads, 1, 1)
        emulate(self.ptx, kernel, grid, block, arguments, hazards=False)
        return found

    def run(self, device: Device) -> Words:
        """The result of `device`."""
        kernel = device.kernel(self.ptx, self.name.split(":")[0])
        arrays = [device.array(words) for words in (*self.inputs, self._blank())]
        maps = [device.tensor_map(one, arrays[one.array]) for one in self.maps]
        *inputs, found = arrays
        grid, block = (self.blocks, 1, 1), (self.threads, 1, 1)
        kernel(grid, block, [*inputs, *maps, found])
        return device.host(found)

    def differences(self, got: Words, expected: Words) -> dict[str, int]:
        """How many words differ, by form; only the forms with any."""
        parts = len(self.forms)
        found = {}
        for (name, kind), one, two in zip(
            self.forms, np.split(got, parts), np.split(expected, parts), strict=True
        ):
            count = int(np.count_nonzero(~_equal(one, two, kind)))
            if count:
                found[name] = count
        return found

    def _blank(self) -> Words:
        return np.full(self.words, self.before, np.uint32)


def generator_of(name: str) -> np.random.Generator:
    """Random numbers that are the same each time, by the name of the probe."""
    return np.random.default_rng(list(name.encode()))


def _equal(one: Words, two: Words, kind: str) -> Words:
    """Which words agree, by word."""
    same = one == two
    if kind == "bits":
        return same
    if kind == "accumulators":
        a, b = one.view(np.float32), two.view(np.float32)
        return same | (np.abs(a - b) <= SUM_ERROR)
    if kind == "f32":
        return same | (np.isnan(one.view(np.float32)) & np.isnan(two.view(np.float32)))
    halves_one, halves_two = one.view(np.uint16), two.view(np.uint16)
    both_nan = _is_nan(halves_one, kind) & _is_nan(halves_two, kind)
    return ((halves_one == halves_two) | both_nan).reshape(-1, 2).all(axis=1)


def _is_nan(halves: Words, kind: str) -> Words:
    infinity = {"f16": 0x7C00, "bf16": 0x7F80}[kind]
    return (halves & 0x7FFF) > infinity
