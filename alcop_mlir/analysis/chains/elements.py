"""Elements of tensors as expressions of one chain.

Equal expressions are one `Element`, so that two are compared by `is`. Floats of 16 bits
are computed in f32: what rounds less is right too. Integers are i32 where their least
and largest value fit that, as numbers of rows and columns do, else i64 (`integers.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.frozen import frozen

FLOAT = "f32"
BOOLEAN = "i1"
INTEGER = "i32"
LONG = "i64"
NARROW_FLOATS = ("f16", "bf16")

LEAST, MOST = -(2**31), 2**31 - 1

Limits = tuple[int, int]


@frozen(eq=False)
class Element:
    """An expression; two are equal if they are one object.

    name:       of the op; or "constant", "index", "input", "scores", "reduction"
    operands:   what it is computed from; of a reduction its term
    type:       FLOAT, BOOLEAN, INTEGER or LONG
    detail:     attributes of the op, by name; the number of a constant; the loops of an
                index; of an input the tensor and its indices; of a reduction the op
                that combines, and the number it starts from
    loops:      those it depends on
    reductions: those it depends on; of a reduction, not itself
    has_scores: whether it depends on an element of the first contraction
    limits:     the least and largest value of an INTEGER
    """

    name: str
    operands: tuple[Element, ...]
    type: str
    detail: Any
    loops: frozenset[int]
    reductions: frozenset[Any]
    has_scores: bool
    limits: Limits | None = None

    @property
    def needs(self) -> frozenset[Any]:
        """The reductions that whoever reads it depends on."""
        own = {self} if self.name == "reduction" else set[Any]()
        return self.reductions | own


@dataclass
class Pool:
    """Makes elements, each once."""

    _known: dict[Any, Element] = field(default_factory=dict)

    def constant(self, number: float, kind: str) -> Element:
        """A number."""
        limits = (int(number), int(number)) if kind == INTEGER else None
        return self._made("constant", (), kind, number, limits=limits)

    def leaf(
        self,
        name: str,
        kind: str,
        detail: Any,
        loops: frozenset[int],
        limits: Limits | None = None,
    ) -> Element:
        """An element of a tensor: an "input", or of the "scores"."""
        has_scores = name == "scores"
        return self._made(
            name, (), kind, detail, loops, has_scores=has_scores, limits=limits
        )

    def index(self, loops: tuple[int, ...], extent: int) -> Element:
        """The number that loops count, below `extent`."""
        kept = frozenset(loops)
        return self._made("index", (), INTEGER, loops, kept, limits=(0, extent - 1))

    def reduction(
        self, term: Element, combine: str, start: float, loop: int
    ) -> Element:
        """All elements of a row combined."""
        return self._made(
            "reduction",
            (term,),
            FLOAT,
            (combine, start),
            term.loops - {loop},
            term.needs,
            term.has_scores,
        )

    def op(
        self,
        name: str,
        operands: tuple[Element, ...],
        kind: str,
        attributes: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
    ) -> Element:
        """What an op computes of elements."""
        return self._made(
            name,
            operands,
            kind,
            tuple(sorted((attributes or {}).items())),
            frozenset[int]().union(*(one.loops for one in operands)),
            frozenset[Any]().union(*(one.needs for one in operands)),
            any(one.has_scores for one in operands),
            limits,
        )

    def _made(
        self,
        name: str,
        operands: tuple[Element, ...],
        kind: str,
        detail: Any,
        loops: frozenset[int] = frozenset(),
        reductions: frozenset[Any] = frozenset(),
        has_scores: bool = False,
        limits: Limits | None = None,
    ) -> Element:
        # By their text: -0.0 is not 0.0, and a NaN is itself.
        shown = repr(detail) if name == "constant" else detail
        key = (name, operands, kind, shown)
        if key not in self._known:
            self._known[key] = Element(
                name, operands, kind, detail, loops, reductions, has_scores, limits
            )
        return self._known[key]


def within_words(limits: Limits) -> bool:
    """Whether integers within these limits fit 32 bits."""
    return limits[0] >= LEAST and limits[1] <= MOST
