"""mma of every shape that `matrix_multiply` does not run, mma.sp, and wmma.mma.

PTX ISA "Warp Level Matrix Multiply-Accumulate Instructions". Operands are decoded to
whole matrices, multiplied in float64 (integers exactly), and rounded once to D. Where
the elements lie is said by `arithmetic.fragments`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic import fragments
from alcop_mlir.runtime.emulator.arithmetic.fragments import (
    ELEMENTS,
    Element,
    Placement,
)
from alcop_mlir.runtime.emulator.arithmetic.storage import F32, F64, Array
from alcop_mlir.runtime.emulator.instructions.translator import (
    Op,
    Translator,
    rounding,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Integer,
    Operand,
    elements,
    unsupported,
)

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
_LAYOUTS = ("row", "col")
_F16_LARGEST = 65504.0
_SIGNS = ({"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2"})  # types that may be mixed
# PTX ISA, "mma": rows and depths of each type of A that come here; all have 8 columns.
_DENSE_SHAPES = {
    "f16": ((8, 4),),
    "f64": ((8, 4), (16, 4), (16, 8), (16, 16)),
    **dict.fromkeys(("s8", "u8"), ((8, 16),)),
    **dict.fromkeys(("s4", "u4"), ((8, 32), (16, 32), (16, 64))),
    "b1": ((8, 128), (16, 128), (16, 256)),
}
# PTX ISA, "mma.sp": the depths of each type of A; all have 16 rows and 8 columns.
_SPARSE_DEPTHS = {
    "f16": (16, 32),
    "bf16": (16, 32),
    "tf32": (8, 16),
    "s8": (32, 64),
    "u8": (32, 64),
    "s4": (64, 128),
    "u4": (64, 128),
    "e4m3": (64,),
    "e5m2": (64,),
}
_WMMA_SHAPES = {
    (16, 16, 16),
    (8, 32, 16),
    (32, 8, 16),
    (16, 16, 8),
    (8, 8, 4),
    (8, 8, 32),
    (8, 8, 128),
}


def shape_of(ins: Instruction) -> tuple[int, int, int]:
    """m, n and k, as the opcode names them."""
    for part in ins.parts:
        found = _SHAPE.match(part)
        if found is not None:
            m, n, k = map(int, found.groups())
            return m, n, k
    raise unsupported(ins)


def _operand_types(ins: Instruction) -> tuple[str, str, str, str]:
    """Those of D, A, B and C, which have to go together."""
    d, a, b, c = types_of(ins)
    mixed = any({a, b} <= group for group in _SIGNS)
    if a[0] in "sub" and a != "bf16":
        results = ("s32",)
    else:
        results = ("f64",) if a == "f64" else ("f16", "f32")
    fits = ELEMENTS[d].encode is not None and ELEMENTS[c].encode is not None
    if not (a == b or mixed) or not fits or not {d, c} <= set(results):
        raise unsupported(ins)
    return d, a, b, c


def types_of(ins: Instruction) -> list[str]:
    """The element types that the opcode names, in its order."""
    return [part for part in ins.parts if part in ELEMENTS]


@dataclass(frozen=True)
class Fragment:
    """An operand: where its elements lie, their type, and its registers.

    slots: -1 for a register that is not kept
    """

    placement: Placement
    element: Element
    reads: tuple[Read, ...]
    slots: tuple[int, ...]

    def load(self, cohort: Cohort) -> Array:
        """The matrices, int64 or float64 (blocks, warps, matrices, rows, columns)."""
        shape = (cohort.blocks, cohort.warps, LANES)
        registers = [np.broadcast_to(read(cohort.R), shape) for read in self.reads]
        values = [self.element.decode(x) for x in registers]
        return self.placement.gather(np.concatenate(values, axis=-1))

    def store(self, cohort: Cohort, mask: Mask, matrices: Array) -> None:
        """Writes matrices to the registers."""
        encode, per = self.element.encode, self.element.per_register
        assert encode is not None
        values = self.placement.spread(matrices)
        for i, slot in enumerate(self.slots):
            if slot >= 0:
                x = encode(values[..., i * per : (i + 1) * per])
                cohort.put(slot, np.ascontiguousarray(x), mask)


def fragment(
    t: Translator,
    ins: Instruction,
    operand: Operand,
    type_name: str,
    placement: Placement,
    written: bool = False,
) -> Fragment:
    """The registers of an operand; they have to be as many as the shape asks for."""
    element, items = ELEMENTS[type_name], elements(operand)
    count = max(placement.elements // element.per_register, 1)
    if len(items) != count:
        raise unsupported(ins, f"expected {count} registers, got {len(items)}")
    if written:
        dtype = SCALARS[f"b{element.register_bits}"].dtype
        slots = tuple(t.result(item, dtype, ins)[0] for item in items)
        return Fragment(placement, element, (), slots)
    scalar = SCALARS[f"b{element.register_bits}"]
    reads = tuple(t.read(item, scalar, ins) for item in items)
    return Fragment(placement, element, reads, ())


Load = Callable[[Cohort], Array]
Product = Callable[[Array, Array, Array], Array]


def _product(ins: Instruction) -> Product:
    """A times B plus C, of whole matrices."""
    if "popc" in ins.parts:
        return _count_bits if "xor" in ins.parts else lambda a, b, c: _exact(a, b) + c
    if types_of(ins)[0] == "f64" and rounding(ins) != "rn":
        mode = rounding(ins)
        return lambda a, b, c: _directed(a, b, c, mode)
    return lambda a, b, c: _exact(a, b) + c


def _exact(a: Array, b: Array) -> Array:
    """In float64, which holds every sum of products of integers that PTX has."""
    product = np.matmul(a.astype(F64), b.astype(F64))
    return product if a.dtype == F64 else product.astype(np.int64)


def _count_bits(a: Array, b: Array, c: Array) -> Array:
    """How many bits of a row of A and a column of B differ."""
    each = a.sum(axis=-1, keepdims=True) + b.sum(axis=-2, keepdims=True)
    return each - 2 * _exact(a, b) + c


def _directed(a: Array, b: Array, c: Array, mode: str) -> Array:
    """Each a * b added with one rounding, in the order of k."""
    for k in range(a.shape[-1]):
        x, y = np.broadcast_arrays(a[..., :, k, None], b[..., None, k, :])
        near = x * y + c
        c = num.in_fractions(lambda x, y, z: x * y + z, near, mode, x, y, c)
    return c


def _finish(ins: Instruction, type_name: str) -> Callable[[Array], Array]:
    """The end of the range: integers wrap or stop, floats may have to stay finite."""
    saturates = "satfinite" in ins.parts
    if type_name == "s32":
        if saturates:
            return lambda x: np.clip(x, -(1 << 31), (1 << 31) - 1)
        return lambda x: x
    if not saturates:
        return lambda x: x
    largest = _F16_LARGEST if type_name == "f16" else float(np.finfo(F32).max)
    return lambda x: np.clip(x, -largest, largest)


def _multiplication(
    ins: Instruction, d: Fragment, d_type: str, a: Load, b: Fragment, c: Fragment
) -> Op:
    product, finish = _product(ins), _finish(ins, d_type)

    def run(cohort: Cohort, mask: Mask) -> None:
        total = product(a(cohort), b.load(cohort), c.load(cohort))
        d.store(cohort, mask, finish(total))

    return run


def multiply_any(t: Translator, ins: Instruction) -> Op:
    """mma.sync of a shape or type without a faster way."""
    m, n, k = shape_of(ins)
    layouts = [part for part in ins.parts if part in _LAYOUTS]
    types = _operand_types(ins)
    d_type, a_type, b_type, c_type = types
    if n != 8 or (m, k) not in _DENSE_SHAPES.get(a_type, ()):
        raise unsupported(ins)
    if a_type == "f16":
        places = _quad_pairs(layouts, d_type, c_type)
    elif layouts == ["row", "col"]:
        per_a, per_b = (ELEMENTS[name].per_register for name in (a_type, b_type))
        rows = fragments.accumulator(m)
        places = [
            rows,
            fragments.operand_a(m, k, per_a),
            fragments.operand_b(k, per_b),
            rows,
        ]
    else:
        raise unsupported(ins)
    d, a, b, c = _fragments(t, ins, ins.operands, types, places)
    return _multiplication(ins, d, d_type, a.load, b, c)


def _quad_pairs(layouts: list[str], d_type: str, c_type: str) -> list[Placement]:
    return [
        fragments.quad_pair_accumulator(d_type),
        fragments.quad_pair_operand(True, layouts[0]),
        fragments.quad_pair_operand(False, layouts[1]),
        fragments.quad_pair_accumulator(c_type),
    ]


def _fragments(
    t: Translator,
    ins: Instruction,
    operands: Sequence[Operand],
    types: Sequence[str],
    places: Sequence[Placement],
) -> list[Fragment]:
    """D, which is written, then A, B and C."""
    rows = zip(operands, types, places, strict=True)
    return [
        fragment(t, ins, operand, name, placement, written=i == 0)
        for i, (operand, name, placement) in enumerate(rows)
    ]


def multiply_sparse(t: Translator, ins: Instruction) -> Op:
    """mma.sp: half of A is stored; metadata says which half."""
    m, n, k = shape_of(ins)
    types = _operand_types(ins)
    d_type, a_type, b_type, _ = types
    *operands, metadata, selector = ins.operands
    if (m, n) != (16, 8) or k not in _SPARSE_DEPTHS.get(a_type, ()):
        raise unsupported(ins)
    if not isinstance(selector, Integer):
        raise unsupported(ins, "expected an immediate selector")
    lanes = fragments.metadata_lanes(a_type, k)
    if not 0 <= selector.value < 4 // lanes:
        raise unsupported(ins, f"expected a selector below {4 // lanes}")
    per_a, per_b = (ELEMENTS[name].per_register for name in (a_type, b_type))
    places = [
        fragments.accumulator(m),
        fragments.operand_a(m, k // 2, per_a),
        fragments.operand_b(k, per_b),
        fragments.accumulator(m),
    ]
    d, a, b, c = _fragments(t, ins, operands, types, places)
    read = t.read(metadata, U32T, ins)

    def load(cohort: Cohort) -> Array:
        shape = (cohort.blocks, cohort.warps, 1, LANES)
        word = np.broadcast_to(read(cohort.R)[:, :, None], shape)
        return fragments.expand(a.load(cohort), word, a_type, k, selector.value)

    return _multiplication(ins, d, d_type, load, b, c)


# --- wmma ----------------------------------------------------------------------------


def wmma_placement(
    ins: Instruction, operand: str, type_name: str, registers: int
) -> Placement:
    """Of operand "a", "b", "c" or "d"; B lies column after column."""
    m, n, k = shape_of(ins)
    if (m, n, k) not in _WMMA_SHAPES:
        raise unsupported(ins)
    rows, columns = {"a": (m, k), "b": (k, n)}.get(operand, (m, n))
    count = registers * ELEMENTS[type_name].per_register
    if rows * columns > LANES * count or LANES * count % (rows * columns):
        raise unsupported(ins, f"a fragment of {registers} registers")
    return fragments.in_memory_order(rows, columns, count, operand != "b")


def multiply_wmma(t: Translator, ins: Instruction) -> Op:
    """wmma.mma: the layouts that it names only say how its operands were loaded."""
    types = types_of(ins)
    if len(types) == 2:  # those of D and C; A and B are f16
        types[1:1] = ["f16", "f16"]
    places = [
        wmma_placement(ins, operand, name, len(elements(given)))
        for operand, name, given in zip("dabc", types, ins.operands, strict=True)
    ]
    d, a, b, c = _fragments(t, ins, ins.operands, types, places)
    return _multiplication(ins, d, types[0], a.load, b, c)
