"""The machine code of a cubin: its loops and their instructions.

usage: python bench/sass.py FILE.cubin     a table of the loops with matrix instructions
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from records import print_table

# Instructions that multiply matrices, on sm_80 to sm_90.
MATRIX = ("HMMA", "IMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA")
_LABEL = re.compile(r"\s*\.?(L_x_\w+|L_\w+):")
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?P<text>.*?)\s*;")
_SECTION = re.compile(r"^//-+ (?P<name>\S+) +-+$", re.MULTILINE)
_PREDICATE = re.compile(r"@!?U?P\w+\s+")
_BRANCH = re.compile(r"\bBRA\b.*?`\(\.?(?P<label>L_\w+)\)")


@dataclass(frozen=True)
class Loop:
    """A backward branch and what lies between it and its target.

    instructions: how many there are, the branch included, by opcode without modifiers
    """

    start: int
    end: int
    instructions: Counter[str]

    @property
    def size(self) -> int:
        """Number of instructions."""
        return self.instructions.total()

    @property
    def matrix(self) -> int:
        """Number of instructions that multiply matrices."""
        return sum(self.instructions[name] for name in MATRIX)

    @property
    def per_matrix(self) -> float:
        """Instructions of any kind for each that multiplies matrices."""
        return self.size / self.matrix


def find_nvdisasm() -> Path:
    """That of the wheel nvidia-cuda-nvdisasm, else the one on PATH; exits if none."""
    packages = Path(sysconfig.get_paths()["purelib"], "nvidia")
    in_wheel = sorted(packages.glob("*/bin/nvdisasm"))
    found = in_wheel[-1] if in_wheel else shutil.which("nvdisasm")
    if found is None:
        raise SystemExit("error: no nvdisasm, pip install nvidia-cuda-nvdisasm")
    return Path(found)


def disassemble(cubin: bytes) -> str:
    """nvdisasm's listing of the code."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run(
            [find_nvdisasm(), "-c", file.name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout


def backward_branches(listing: str) -> Iterator[tuple[int, list[str]]]:
    """Where each loop starts, and its instructions, the branch included."""
    labels: dict[str, int] = {}
    texts: list[str] = []
    for line in listing.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(texts)
        elif instruction := _INSTRUCTION.match(line):
            texts.append(instruction["text"])
    for number, text in enumerate(texts):
        branch = _BRANCH.search(text)
        start = labels.get(branch["label"], number + 1) if branch else number + 1
        if start <= number:
            yield start, texts[start : number + 1]


def instructions(listing: str) -> list[str]:
    """All of them, in their order, but what fills up."""
    found = (_INSTRUCTION.match(line) for line in listing.splitlines())
    texts = [one["text"] for one in found if one is not None]
    return [text for text in texts if opcode(text) != "NOP"]


def loops(listing: str) -> list[Loop]:
    """All loops with matrix instructions; those with the most first."""
    found = [
        Loop(start, start + len(texts) - 1, Counter(map(opcode, texts)))
        for start, texts in backward_branches(listing)
    ]
    with_matrix = (loop for loop in found if loop.matrix)
    return sorted(with_matrix, key=lambda loop: (-loop.matrix, loop.size))


def straight(listing: str) -> Loop:
    """From the first matrix instruction to the last barrier, where no loop has any.

    What follows that barrier is the last step along K, mixed with the epilogue. To the
    last matrix instruction where there is one step.
    """
    texts = [
        instruction["text"]
        for line in listing.splitlines()
        if (instruction := _INSTRUCTION.match(line))
    ]
    found = [n for n, text in enumerate(texts) if opcode(text) in MATRIX]
    if not found:
        raise SystemExit("error: no matrix instructions in the cubin")
    first, last = found[0], found[-1]
    inside = (n for n in range(first, last) if opcode(texts[n]) == "BAR")
    last = max(inside, default=last)
    return Loop(first, last, Counter(map(opcode, texts[first : last + 1])))


def steady_state(cubin: bytes, kernel: str = "") -> Loop:
    """The loop with the most matrix instructions, the shortest of them.

    kernel: one of those in the cubin; else all are looked at
    """
    listing = disassemble(cubin)
    found = loops(section(listing, kernel) if kernel else listing)
    if not found:
        raise SystemExit("error: no loop with matrix instructions in the cubin")
    return found[0]


def section(listing: str, kernel: str) -> str:
    """The part of a listing that is one kernel's code."""
    starts = [*_SECTION.finditer(listing)]
    names = [start["name"] for start in starts]
    number = names.index(f".text.{kernel}")
    ends = [*(start.start() for start in starts), len(listing)]
    return listing[starts[number].start() : ends[number + 1]]


def opcode(text: str) -> str:
    """The opcode without predicate and modifiers."""
    return operation(text)[0].split(".")[0]


def operation(text: str) -> list[str]:
    """The opcode with its modifiers, and the operands, without predicate."""
    return _PREDICATE.sub("", text).split()


def main(arguments: Sequence[str]) -> None:
    """Print the loops of a cubin."""
    if len(arguments) != 1:
        raise SystemExit((__doc__ or "").split("\n\n")[1])
    found = loops(disassemble(Path(arguments[0]).read_bytes()))
    rows = []
    for loop in found:
        mix = " ".join(f"{name} {n}" for name, n in loop.instructions.most_common(12))
        rows.append([f"{loop.per_matrix:.2f}", loop.size, loop.matrix, mix])
    print_table(["per matrix op", "instructions", "matrix ops", "mix"], rows)


if __name__ == "__main__":
    main(sys.argv[1:])
