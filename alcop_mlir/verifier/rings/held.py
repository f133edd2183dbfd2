"""Fragments of A in registers: what wgmma reads there, and who writes them.

Behind alcop-lower-mma. A value of the IR is a register: where its op runs again, as in
the next iteration of a loop, it is written again, while a group of wgmma that is in
flight may still read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside
from alcop_mlir.verifier.rings.products import HELD, takes_registers_apart
from alcop_mlir.verifier.rings.unproven import Unproven

_WORDS = slice(1, 5)  # operands of a wgmma: words of A
# Besides those that take registers apart: of them no instruction is left, either.
_RENAMES = (
    "vector.bitcast",
    "vector.shape_cast",
    "vector.shuffle",
    "vector.extract_strided_slice",
    "vector.insert_strided_slice",
    "arith.bitcast",
)
_CONSTANTS = ("arith.constant", "llvm.mlir.undef", "ub.poison")


@dataclass
class Held:
    """The registers of A in a kernel, by numbers.

    written: by an op
    read:    by a wgmma
    """

    kernel: Any
    written: dict[Any, frozenset[int]] = field(default_factory=dict)
    read: dict[Any, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for op in inside(self.kernel):
            if op.name == HELD:
                self.read[op] = frozenset(
                    number for word in op.operands[_WORDS] for number in self._of(word)
                )

    def _of(self, word: Any) -> list[int]:
        """The registers that a word is in: those of the ops that make it."""
        found, seen, pending = list[int](), set[Any](), [word]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if isinstance(value.owner, ir.Block):
                owner = value.owner.owner.operation
                raise Unproven(owner, "carries A of a wgmma from one iteration on")
            maker = value.owner.operation
            if takes_registers_apart(maker) or maker.name in _RENAMES:
                pending += list(maker.operands)
            elif maker.name not in _CONSTANTS:
                if maker not in self.written:
                    self.written[maker] = frozenset([len(self.written)])
                found += self.written[maker]
        return found
