"""What a function should compute, as data: steps that each compute one array.

Arrays have names: that of a parameter of the function, or of a step's `out`. A name has
one value: steps that read a parameter come before the step whose `out` is that name.
`maps` says which loops index each operand, as einsum does: "mk,kn->mn"; "." is index 0.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from alcop_mlir.element_types import ROUNDED_INPUTS
from alcop_mlir.errors import ConfigError
from alcop_mlir.fields import Fields, is_count, short
from alcop_mlir.reference import expressions
from alcop_mlir.reference.expressions import Expression

PRECISIONS = tuple(ROUNDED_INPUTS.values())
COMBINES = (
    "arith.addf arith.mulf arith.maximumf arith.minimumf arith.maxnumf arith.minnumf "
    "arith.addi arith.maxsi arith.minsi"
).split()
_TYPES = (*expressions.FLOATS, *expressions.INTEGERS)
Size = int | str  # a number, or the name of a size known when arrays are given


@dataclass(frozen=True)
class Einsum:
    """`out = einsum(maps, lhs, rhs)`, plus the array named `init` if there is one.

    precision: what the kernel rounds lhs and rhs to before it multiplies, if it does
    dtype:     of `out`
    `sums`:    the accumulator type, which is rounded to it; tensor cores support f32
               and i32 only
    """

    lhs: str
    rhs: str
    out: str
    maps: str
    init: str | None
    precision: str | None = None
    dtype: str = "f32"
    sums: str = "f32"

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the arrays that the step uses."""
        return (self.lhs, self.rhs) + (() if self.init is None else (self.init,))


@dataclass(frozen=True)
class Map:
    """`out = expression(inputs)` for each element of an array of `shape`."""

    inputs: tuple[str, ...]
    maps: str
    out: str
    expression: Expression
    shape: tuple[Size, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the arrays that the step uses."""
        return self.inputs


@dataclass(frozen=True)
class Reduction:
    """`out` is `expression(inputs)` combined over the loops that do not index it.

    combine: the combining op; it starts from the array `init` if there is one
    dtype:   the type that it computes in
    """

    inputs: tuple[str, ...]
    maps: str
    out: str
    expression: Expression
    combine: str
    dtype: str
    init: str | None

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the arrays that the step uses."""
        return self.inputs + (() if self.init is None else (self.init,))


@dataclass(frozen=True)
class Reshape:
    """`out` has the elements of `source` in the same order."""

    source: str
    out: str
    shape: tuple[Size, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the arrays that the step uses."""
        return (self.source,)


@dataclass(frozen=True)
class Slice:
    """`out` is a part of `source`: per dimension an offset, a size and a stride."""

    source: str
    out: str
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the arrays that the step uses."""
        return (self.source,)


@dataclass(frozen=True)
class Insert:
    """`out` is `target` with `source` instead of the elements of a `Slice`."""

    source: str
    target: str
    out: str
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the arrays that the step uses."""
        return (self.source, self.target)


@dataclass(frozen=True)
class WindowViews:
    """`out` is `source` with two dimensions instead of `dimension`.

    The index of that is `position * stride + tap * dilation`, as in convolutions.
    """

    source: str
    out: str
    dimension: int
    positions: int
    stride: int
    taps: int
    dilation: int

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the arrays that the step uses."""
        return (self.source,)


Step = Einsum | Map | Reduction | Reshape | Slice | Insert | WindowViews
_StepT = TypeVar("_StepT", bound=Step)
# The names of steps in stored files.
_KINDS: dict[str, type[Step]] = {
    "contraction": Einsum,
    "map": Map,
    "reduction": Reduction,
    "reshape": Reshape,
    "slice": Slice,
    "insert": Insert,
    "windows": WindowViews,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_NAME_FIELDS = ("lhs", "rhs", "init", "out", "source", "target")


def operand_maps(step: Einsum | Map | Reduction) -> tuple[list[str], str]:
    """The loops of each operand, and of `out`."""
    operands, out = step.maps.split("->")
    is_empty = isinstance(step, Map) and not step.inputs
    return ([] if is_empty else operands.split(",")), out


def renamed(step: _StepT, names: Mapping[str, str]) -> _StepT:
    """`step` with some arrays renamed."""
    changes: dict[str, Any] = {
        field.name: names.get(getattr(step, field.name), getattr(step, field.name))
        for field in fields(step)
        if field.name in _NAME_FIELDS
    }
    if isinstance(step, Map | Reduction):
        changes["inputs"] = tuple(names.get(name, name) for name in step.inputs)
    return replace(step, **changes)


def with_sizes(step: _StepT, sizes: Mapping[str, int]) -> _StepT:
    """`step` with numbers for the sizes named there."""
    if not isinstance(step, Map | Reshape):
        return step
    shape = tuple(sizes.get(n, n) if isinstance(n, str) else n for n in step.shape)
    return replace(step, shape=shape)


def to_json(step: Step) -> dict[str, Any]:
    """`step` as JSON values."""
    value: dict[str, Any] = {"op": _NAMES[type(step)]}
    for name, part in vars(step).items():
        value[name] = list(part) if isinstance(part, tuple) else part
    if isinstance(step, Map | Reduction):
        value["expression"] = expressions.to_json(step.expression)
    return value


def from_json(
    values: Iterable[Any], arrays: Iterable[str], sizes: Collection[str]
) -> tuple[Step, ...]:
    """The checked steps of a function; ConfigError says what is wrong with them.

    arrays, sizes: names of the function's parameters, and of their sizes
    """
    known = set(arrays)
    steps: list[Step] = []
    for value in values:
        step = _step(value)
        for name in step.reads:
            if name not in known:
                raise ConfigError(f"reference: unknown array '{name}'")
        shape = step.shape if isinstance(step, Map | Reshape) else ()
        for size in shape:
            if isinstance(size, str) and size not in sizes:
                raise ConfigError(f"reference: unknown size '{size}'")
        known.add(step.out)
        steps.append(step)
    return tuple(steps)


def _step(value: Any) -> Step:
    taken = Fields(value, "reference")
    kind = _KINDS[taken.one_of("op", tuple(_KINDS))]
    step = kind(**{f.name: _member(taken, value, f.name) for f in fields(kind)})
    if isinstance(step, Einsum | Map | Reduction):
        _check_maps(step)
    if isinstance(step, Slice | Insert):
        _check_ranks(step)
    return step


def _member(taken: Fields, value: Any, name: str) -> Any:
    """The checked member of that name, the same for all kinds of steps."""
    match name:
        case "init":
            return None if value.get(name) is None else taken.take(name, str)
        case "precision":
            is_given = value.get(name) is not None
            return taken.one_of(name, PRECISIONS) if is_given else None
        case "dtype" | "sums":
            return taken.one_of(name, _TYPES) if name in value else "f32"
        case "combine":
            return taken.one_of(name, tuple(COMBINES))
        case "maps":
            return taken.matching(name, r"[A-Za-z.]*(,[A-Za-z.]*)*->[A-Za-z]*")
        case "expression":
            return expressions.from_json(value.get(name))
        case "inputs":
            return _all(taken.take(name, list), lambda one: isinstance(one, str))
        case "shape":
            return _all(
                taken.take(name, list),
                lambda one: isinstance(one, str) or is_count(one),
            )
        case "offsets" | "sizes" | "strides":
            return _all(taken.take(name, list), is_count)
        case "dimension" | "positions" | "stride" | "taps" | "dilation":
            return taken.count(name)
        case _:
            return taken.take(name, str)


def _all(values: list[Any], is_right: Any) -> tuple[Any, ...]:
    for one in values:
        if not is_right(one):
            raise ConfigError(f"reference: unexpected {short(one)}")
    return tuple(values)


def _check_maps(step: Einsum | Map | Reduction) -> None:
    """ConfigError where loops and operands do not fit each other."""
    operands, out = operand_maps(step)
    inputs = 2 if isinstance(step, Einsum) else len(step.inputs)
    if len(operands) != inputs or any(_repeats(one) for one in (*operands, out)):
        raise ConfigError(f"reference: 'maps' is {short(step.maps)}")
    read = {loop for one in operands for loop in one} - {"."}
    if isinstance(step, Map):
        if not read <= set(out) or len(step.shape) != len(out):
            raise ConfigError(f"reference: 'maps' is {short(step.maps)} in a map")
    elif not set(out) <= read:
        raise ConfigError(f"reference: {short(step.maps)} has a loop of 'out' only")
    if isinstance(step, Einsum):
        return
    used = expressions.arguments(step.expression)
    if used and max(used) >= inputs:
        raise ConfigError(f"reference: argument {max(used)} of {inputs} inputs")


def _repeats(loops: str) -> bool:
    """Whether a loop occurs twice."""
    return re.search(r"([A-Za-z]).*\1", loops) is not None


def _check_ranks(step: Slice | Insert) -> None:
    if len({len(step.offsets), len(step.sizes), len(step.strides)}) != 1:
        raise ConfigError("reference: offsets, sizes and strides of different ranks")
