"""Linalg ops as loop nests: which loops go over the elements of the outputs.

`read` returns a `Nest`, or a `Rejected` that says why the SIMT fallback, one thread per
element of the outputs, cannot run the op. Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.contractions import indexing_maps
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.element_types import ARRAY_FLOATS

_INTEGERS = (ir.IntegerType, ir.IndexType)


@dataclass(frozen=True)
class Nest:
    """A linalg op on memrefs.

    maps:   per operand, how the loops index it
    inputs: how many of the operands are read only; the others are outputs
    points: loops that index the outputs, in the order of the first one's dimensions:
            iterations that differ in them write different elements
    inner:  the other loops, outer ones first: one element is computed by all of them
    sizes:  per loop, a memref and the number of its dimension that has the loop's size
    """

    op: Any
    maps: tuple[Any, ...]
    inputs: int
    points: tuple[int, ...]
    inner: tuple[int, ...]
    sizes: tuple[tuple[Any, int], ...]

    @property
    def body(self) -> Any:
        """The block that computes one element; its arguments are operands' elements."""
        return self.op.regions[0].blocks[0]

    @property
    def outputs(self) -> list[Any]:
        """The memrefs that are written."""
        return list(self.op.operands)[self.inputs :]

    def static_size(self, loop: int) -> int | None:
        """The size of a loop where it is constant."""
        memref, dimension = self.sizes[loop]
        if memref.type.is_dynamic_dim(dimension):
            return None
        return memref.type.shape[dimension]


class _NoNest(Exception):
    """Carries the reason to `read`."""


def is_structured(op: Any) -> bool:
    """Whether the linalg op has indexing maps."""
    return indexing_maps(op) is not None


def read(op: Any) -> Nest | Rejected:
    """The linalg op as a loop nest, or why it is not a supported one."""
    try:
        return _read(op.operation)
    except _NoNest as no:
        return Rejected(op.operation, str(no))


def _read(op: Any) -> Nest:
    _check_form(op)
    maps = tuple(indexing_maps(op) or ())
    (terminator,) = list(op.regions[0].blocks[0].operations)[-1:]
    inputs = len(op.operands) - len(terminator.operation.operands)
    points = _points(maps[inputs:])
    inner = tuple(n for n in range(maps[0].n_dims) if n not in points)
    _check_reduction(op, inputs, inner)
    nest = Nest(op, maps, inputs, points, inner, _sizes(op, maps))
    _check_reach(nest)
    return nest


def loops_of(expression: Any) -> list[int]:
    """The loops that an index is computed from."""
    if isinstance(expression, ir.AffineDimExpr):
        return [ir.AffineDimExpr(expression).position]
    if isinstance(expression, ir.AffineBinaryExpr):
        binary = ir.AffineBinaryExpr(expression)
        return loops_of(binary.lhs) + loops_of(binary.rhs)
    return []


def _check_form(op: Any) -> None:
    """Raise unless `op` is a structured op on memrefs that is not marked."""
    if not is_structured(op):
        raise _NoNest("is not a loop nest: expected an op with indexing maps")
    for value in op.operands:
        if isinstance(value.type, ir.RankedTensorType):
            raise _NoNest("works on tensors, expected memrefs: bufferize first")
        space = getattr(value.type, "memory_space", None)
        if space is not None:
            raise _NoNest(f"uses {value.type}, expected no memory space")
        element = getattr(value.type, "element_type", value.type)
        if str(element) not in ARRAY_FLOATS and not isinstance(element, _INTEGERS):
            raise _NoNest(
                f"has {element} elements, expected integers, "
                f"{', '.join(ARRAY_FLOATS)}: no target computes with others"
            )
    mark = alcop.get(op, alcop.ContractionAttr) or {}
    if "init" in mark:
        raise _NoNest(
            "is marked as a contraction: expected alcop-tile-to-blocks, which compiles "
            "it, to run before"
        )


def _points(out_maps: tuple[Any, ...]) -> tuple[int, ...]:
    """The loops that index the outputs, the same ones in each."""
    found: list[list[int]] = []
    for one in out_maps:
        if not all(isinstance(e, ir.AffineDimExpr) for e in one.results):
            raise _NoNest(f"writes at {one}, expected loops only")
        found.append([ir.AffineDimExpr(e).position for e in one.results])
        if len(set(found[-1])) != len(found[-1]):
            raise _NoNest(f"writes at {one}, expected each loop once")
        if set(found[-1]) != set(found[0]):
            raise _NoNest("indexes its outputs by different loops, expected the same")
    return tuple(found[0])


def _check_reduction(op: Any, inputs: int, inner: tuple[int, ...]) -> None:
    """Accumulators are registers: the op must not read the output through an input.

    An op without reduction loops may do so: its parallel iterations are independent.
    """
    if not inner:
        return
    operands = list(op.operands)
    written = [root(value) for value in operands[inputs:]]
    for value in operands[:inputs]:
        if isinstance(value.type, ir.MemRefType) and root(value) in written:
            raise _NoNest(
                "reduces into a memref that is also an input, expected another output"
            )


def _sizes(op: Any, maps: tuple[Any, ...]) -> tuple[tuple[Any, int], ...]:
    """A dimension with the size of each loop; a static one if there is one."""
    found: dict[int, tuple[Any, int]] = {}
    for value, one in zip(op.operands, maps, strict=True):
        for number, expression in enumerate(one.results):
            if not isinstance(expression, ir.AffineDimExpr):
                continue
            loop = ir.AffineDimExpr(expression).position
            if loop not in found or not value.type.is_dynamic_dim(number):
                found[loop] = value, number
    missing = [n for n in range(maps[0].n_dims) if n not in found]
    if missing:
        raise _NoNest(f"has no memref with a dimension of loop {missing[0]}'s size")
    return tuple(found[n] for n in range(maps[0].n_dims))


def _check_reach(nest: Nest) -> None:
    """Indices with sizes known at run time must be such that a host can check them."""
    for value, one in zip(nest.op.operands, nest.maps, strict=True):
        for number, expression in enumerate(one.results):
            is_static = not value.type.is_dynamic_dim(number) and all(
                nest.static_size(loop) is not None for loop in loops_of(expression)
            )
            if not is_static and not _grows(expression):
                raise _NoNest(
                    f"indexes by {one} with sizes known at run time: expected indices "
                    "that grow with each loop, whose bounds are checked at launch"
                )


def _grows(expression: Any) -> bool:
    """Whether the index is largest in the last iteration of all loops."""
    if isinstance(expression, ir.AffineDimExpr):
        return True
    if isinstance(expression, ir.AffineConstantExpr):
        return ir.AffineConstantExpr(expression).value >= 0
    if not isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        return False
    binary = ir.AffineBinaryExpr(expression)
    return _grows(binary.lhs) and _grows(binary.rhs)
