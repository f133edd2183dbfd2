"""ld and st.

PTX ISA "Data Movement and Conversion Instructions". Cache operators, eviction
priorities and prefetch sizes do not change results and are accepted.
"""

from __future__ import annotations

import re

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import (
    MOVED_AS,
    Array,
    pack,
    parts,
)
from alcop_mlir.runtime.emulator.instructions import access, flags
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.translator import (
    Op,
    Translator,
    constant,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Name,
    Operand,
    elements,
    space_of,
    unsupported,
)

_VECTOR = re.compile(r"v\d+")
MAX_VECTOR_BYTES = 16  # PTX ISA: .v8 and 32-byte vectors are sm_100 and later


def memory_space(t: Translator, ins: Instruction, address: Operand) -> str:
    """The space of an access: what the opcode names, or where its variable lies.

    The parameters of functions and of calls lie in local memory.
    """
    space = space_of(ins.parts)
    if space == "param":
        base = address.base if isinstance(address, Address) else None
        in_frame = base in t.memory_map.local or not t.kernel.is_entry
        return "local" if in_frame else "param"
    if space is None and isinstance(address, Address) and address.base:
        for name in ("shared", "local", "global"):
            if address.base in t.memory_map.places(name):
                return name
    return {"const": "global", None: "generic"}.get(space) or str(space)


def reaches_cluster(ins: Instruction) -> bool:
    """Whether a shared address may be that of another block of the cluster."""
    return "shared::cluster" in ins.parts


def accessed_bytes(ins: Instruction) -> int:
    """What one lane reads or writes, as far as the opcode says."""
    scalar = SCALARS.get(ins.parts[-1])
    if scalar is None:
        return MAX_VECTOR_BYTES
    return scalar.size * max((len(elements(o)) for o in ins.operands), default=1)


def _vector(ins: Instruction, operand: Operand) -> tuple[tuple[Operand, ...], int]:
    """The elements of the vector that is moved, and its size in bytes."""
    items = elements(operand)
    named = next((part for part in ins.parts if _VECTOR.fullmatch(part)), "v1")
    if named not in ("v1", "v2", "v4", "v8") or int(named[1:]) != len(items):
        raise unsupported(ins, f".{named} of {len(items)} registers")
    size = ins.type.size * len(items)
    if size > MAX_VECTOR_BYTES:
        raise unsupported(ins, f"vectors of more than {MAX_VECTOR_BYTES} bytes")
    return items, size


def load(t: Translator, ins: Instruction) -> Op:
    scalar = ins.type
    items, size = _vector(ins, ins.operands[0])
    source = ins.operands[1]
    space = memory_space(t, ins, source)
    parameter = _named_parameter(t, source) if space == "param" else None
    if parameter is not None:
        return _load_parameter(t, ins, parameter, items)
    address, _ = t.base_address(source, ins)
    part = _extended(scalar)
    relaxed = t.relaxed()
    writes = [relaxed.writer(item, scalar.unsigned, ins) for item in items]
    used = _used(t, items, scalar.size)
    how = {"reaches": reaches_cluster(ins), "order": flags.order_of(ins)}

    def run(cohort: Cohort, mask: Mask) -> None:
        where = Access(cohort, mask, address(cohort.R), space, size, ins, **how)
        x = access.load(where, used)
        if len(writes) == 1:
            writes[0](cohort, x.view(part), mask)
            return
        split = parts(x, part)
        for i, write in enumerate(writes):
            write(cohort, split[..., i], mask)

    return run


def _used(t: Translator, items: tuple[Operand, ...], size: int) -> access.Parts:
    """The elements of a loaded vector that the kernel uses; () if it uses all."""
    used = tuple(
        (i * size, size)
        for i, item in enumerate(items)
        if isinstance(item, Name) and item.name != "_" and t.occurs_again(item.name)
    )
    return used if len(used) < len(items) else ()


def _extended(scalar: Scalar) -> np.dtype:
    """The type whose kind says how a narrow load extends: signed only for .s."""
    return scalar.signed if scalar.kind == "s" else scalar.unsigned


def _named_parameter(t: Translator, source: Operand) -> int | None:
    if not isinstance(source, Address) or source.base is None:
        return source.offset if isinstance(source, Address) else None
    base = t.memory_map.parameters.get(source.base)
    return None if base is None else base + source.offset


def _same(x: Array) -> Array:
    return x


def _load_parameter(
    t: Translator, ins: Instruction, offset: int, items: tuple[Operand, ...]
) -> Op:
    scalar = ins.type
    stop = offset + scalar.size * len(items)
    data = t.memory_map.parameter_bytes[offset:stop]
    if len(data) < stop - offset:
        raise unsupported(ins, "it reads past the end of the parameters")
    values = np.frombuffer(data, _extended(scalar))
    relaxed = t.relaxed()
    ops = [
        relaxed.assign(ins, item, values.dtype, _same, constant(values[i : i + 1]))
        for i, item in enumerate(items)
    ]
    if len(ops) == 1:
        return ops[0]

    def run(cohort: Cohort, mask: Mask) -> None:
        for op in ops:
            op(cohort, mask)

    return run


def store(t: Translator, ins: Instruction) -> Op:
    items, size = _vector(ins, ins.operands[1])
    target = ins.operands[0]
    space = memory_space(t, ins, target)
    address, _ = t.base_address(target, ins)
    raw = SCALARS[f"b{ins.type.bits}"]
    relaxed = t.relaxed()
    reads = [relaxed.read(item, raw, ins) for item in items]
    whole = MOVED_AS[size]
    how = {"reaches": reaches_cluster(ins), "order": flags.order_of(ins)}

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        where = Access(cohort, mask, address(R), space, size, ins, **how)
        values = [read(R) for read in reads]
        access.store(where, values[0] if len(values) == 1 else pack(values, whole))

    return run
