"""ld, st, atom and red.

PTX ISA "Data Movement and Conversion Instructions" (ld, st) and "Parallel
Synchronization and Communication Instructions" (atom, red). Cache operators, eviction
priorities and prefetch sizes do not change results and are accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.collisions import (
    Update,
    reduce_in_order,
    update_in_order,
)
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    MOVED_AS,
    U32,
    Array,
    on_halves,
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
from alcop_mlir.runtime.emulator.machine.releases import Order
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Name,
    Operand,
    Vector,
    elements,
    space_of,
    unsupported,
)

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
    writes = [t.writer(item, scalar.unsigned, ins) for item in items]
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


def _load_parameter(
    t: Translator, ins: Instruction, offset: int, items: tuple[Operand, ...]
) -> Op:
    scalar = ins.type
    stop = offset + scalar.size * len(items)
    data = t.memory_map.parameter_bytes[offset:stop]
    if len(data) < stop - offset:
        raise unsupported(ins, "it reads past the end of the parameters")
    values = np.frombuffer(data, _extended(scalar))
    ops = [
        t.assign(ins, item, values.dtype, lambda x: x, constant(values[i : i + 1]))
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
    reads = [t.read(item, raw, ins) for item in items]
    whole = MOVED_AS[size]
    how = {"reaches": reaches_cluster(ins), "order": flags.order_of(ins)}

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        where = Access(cohort, mask, address(R), space, size, ins, **how)
        values = [read(R) for read in reads]
        access.store(where, values[0] if len(values) == 1 else pack(values, whole))

    return run


# --- atomics -----------------------------------------------------------------------


def _increment(old: Array, b: Array, c: Array) -> Array:
    return np.where(old >= b, U32.type(0), old + U32.type(1))


def _decrement(old: Array, b: Array, c: Array) -> Array:
    return np.where((old == 0) | (old > b), b, old - U32.type(1))


UPDATES: dict[str, Update] = {
    "add": lambda old, b, c: old + b,
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: np.where(old == b, c, old),
    "min": lambda old, b, c: np.minimum(old, b),
    "max": lambda old, b, c: np.maximum(old, b),
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
    "inc": _increment,
    "dec": _decrement,
}


_DECODED: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "min": np.fmin,
    "max": np.fmax,
}


def decoded_update(name: str, scalar: Scalar) -> Update:
    """add, min or max of a type whose numbers NumPy does not compute with as stored."""
    fn = _DECODED[name]

    def one(old: Array, b: Array) -> Array:
        return scalar.encode(fn(scalar.decode(old), scalar.decode(b)), "rn")

    whole = on_halves(one) if scalar.half is not None else one
    return lambda old, b, c: whole(old, b)


def update_memory(t: Translator, ins: Instruction) -> Op:
    scalar = ins.type
    operands = list(ins.operands)
    if "L2::cache_hint" in ins.parts:
        operands.pop()
    if any(isinstance(o, Vector) for o in operands):
        raise unsupported(ins, "vector atomics")
    to = operands.pop(0) if ins.parts[0] == "atom" else Name("_")
    is_asked = isinstance(to, Name) and to.name != "_"
    write = t.writer(to, scalar.unsigned, ins)
    name = next((p for p in ins.parts[1:] if p in UPDATES), None)
    if name is None or len(operands) != (3 if name == "cas" else 2):
        raise unsupported(ins)
    update = UPDATES[name]
    if scalar.is_decoded and name == "add":
        update, name = decoded_update(name, scalar), f"add of {scalar.name}"
    space = memory_space(t, ins, operands[0])
    address, _ = t.base_address(operands[0], ins)
    b = t.read(operands[1], scalar, ins)
    c = t.read(operands[2], scalar, ins) if name == "cas" else None
    order = flags.order_of(ins) or Order(flags.scope_of(ins))
    how = {"reaches": reaches_cluster(ins), "order": order}

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        where = Access(cohort, mask, address(R), space, scalar.size, ins, **how)
        x = b(R).view(scalar.dtype)
        y = None if c is None else c(R).view(scalar.dtype)
        flags.on_order(cohort, mask, order)
        parts = access.split_generic(where) if space == "generic" else [where]
        for part in parts:
            targets = access.atomic_targets(part)
            if is_asked:
                flags.on_read(cohort, targets.lanes, part.space, order)
            flags.on_write(cohort, targets.lanes, part.space, order, updates=True)
            memory = targets.memory.view(scalar.dtype)
            first = targets.pick(x)
            given = first, first if y is None else targets.pick(y)
            if not is_asked:
                reduce_in_order(memory, targets.at, name, update, *given)
                continue
            known = cohort.batch.last_queues
            old = update_in_order(memory, targets.at, name, update, *given, known)
            write(cohort, targets.place(old).view(scalar.unsigned), part.mask)

    return run
