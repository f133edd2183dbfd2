"""atom and red, of numbers and of vectors.

PTX ISA "Parallel Synchronization and Communication Instructions". The lanes of an
atomic go one after the other, in the order of their numbers; each element of a vector
is an atomic of its own. Cache policies do not change results and are accepted. min and
max of 16-bit floats are those of the instructions `min` and `max`: -0 is less than +0,
and a NaN gives the other operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.collisions import (
    Update,
    reduce_in_order,
    update_in_order,
)
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    U32,
    Array,
    on_halves,
    same_bits,
)
from alcop_mlir.runtime.emulator.instructions import access, flags
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.memory import (
    memory_space,
    reaches_cluster,
)
from alcop_mlir.runtime.emulator.instructions.translator import (
    Op,
    Translator,
    Write,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.machine.releases import Order
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Name,
    Operand,
    Vector,
    elements,
    unsupported,
)


def _increment(old: Array, b: Array, c: Array) -> Array:
    return np.where(old >= b, U32.type(0), old + U32.type(1))


def _decrement(old: Array, b: Array, c: Array) -> Array:
    return np.where((old == 0) | (old > b), b, old - U32.type(1))


UPDATES: dict[str, Update] = {
    "add": lambda old, b, c: old + b,
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: np.where(same_bits(old, b), c, old),
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
    "min": lambda a, b: num.minimum(a, b, keep_nan=False),
    "max": lambda a, b: num.maximum(a, b, keep_nan=False),
}


def decoded_update(name: str, scalar: Scalar) -> Update:
    """add, min or max of a type whose numbers NumPy does not compute with as stored."""
    fn = _DECODED[name]

    def one(old: Array, b: Array) -> Array:
        return scalar.encode(fn(scalar.decode(old), scalar.decode(b)), "rn")

    whole = on_halves(one) if scalar.half is not None else one
    return lambda old, b, c: whole(old, b)


def _vector_length(ins: Instruction) -> int:
    """How many elements its vectors have; 1 if it has none."""
    return next((int(p[1]) for p in ins.parts if p in ("v2", "v4", "v8")), 1)


@dataclass(frozen=True)
class _Atomic:
    """A decoded atomic: what it does to each element, and where results go.

    given: the operands of each element, one or for cas two
    writes: how to write what each element found; none if nobody asks
    """

    scalar: Scalar
    name: str
    update: Update
    given: tuple[tuple[Read, ...], ...]
    writes: tuple[Write, ...]

    @property
    def size(self) -> int:
        """In bytes, of all elements."""
        return self.scalar.size * len(self.given)

    def run(self, cohort: Cohort, part: Access, order: Order) -> None:
        """Does it in one state space."""
        dtype = self.scalar.dtype
        values = [[read(cohort.R).view(dtype) for read in one] for one in self.given]
        targets = access.atomic_targets(part)
        if self.writes:
            flags.on_read(cohort, targets.lanes, part.space, order)
        flags.on_write(cohort, targets.lanes, part.space, order, updates=True)
        memory, count = targets.memory.view(dtype), len(self.given)
        for i, value in enumerate(values):
            at = targets.at if count == 1 else targets.at * count + i
            picked = [targets.pick(x) for x in value]
            operands = at, self.name, self.update, picked[0], picked[-1]
            if not self.writes:
                reduce_in_order(memory, *operands)
                continue
            old = update_in_order(memory, *operands, cohort.batch.last_queues)
            found = targets.place(old).view(self.scalar.unsigned)
            self.writes[i](cohort, found, part.mask)


def _decode(t: Translator, ins: Instruction) -> tuple[_Atomic, Operand]:
    """The atomic, and the address."""
    operands = list(ins.operands)
    if "L2::cache_hint" in ins.parts:
        operands.pop()
    to = operands.pop(0) if ins.parts[0] == "atom" else Name("_")
    name = next((p for p in ins.parts[1:] if p in UPDATES), None)
    if name is None or len(operands) != (3 if name == "cas" else 2):
        raise unsupported(ins)
    scalar, count = ins.type, _vector_length(ins)
    address, *values = operands
    results = [] if to == Name("_") else [to]
    for o in (*results, *values):
        if isinstance(o, Vector) != (count > 1) or len(elements(o)) != count:
            raise unsupported(ins, f"expected operands of {count} elements")
    given = tuple(
        tuple(t.read(item, scalar, ins) for item in items)
        for items in zip(*map(elements, values), strict=True)
    )
    update = UPDATES[name]
    if scalar.is_decoded:
        update, name = decoded_update(name, scalar), f"{name} of {scalar.name}"
    writes = tuple(
        t.writer(item, scalar.unsigned, ins) for o in results for item in elements(o)
    )
    return _Atomic(scalar, name, update, given, writes), address


def update_memory(t: Translator, ins: Instruction) -> Op:
    """An atomic operation or reduction on memory."""
    atomic, operand = _decode(t, ins)
    is_vector = len(atomic.given) > 1
    space = memory_space(t, ins, operand)
    address, _ = t.base_address(operand, ins)
    order = flags.order_of(ins) or Order(flags.scope_of(ins))
    how = {"reaches": reaches_cluster(ins), "order": order}

    def run(cohort: Cohort, mask: Mask) -> None:
        where = Access(cohort, mask, address(cohort.R), space, atomic.size, ins, **how)
        flags.on_order(cohort, mask, order)
        parts: Iterable[Access] = [where]
        if space == "generic":
            parts = access.split_generic(where)
        for part in parts:
            if is_vector and part.space != "global":
                raise fault(ins, f"a vector atomic on {part.space} memory")
            atomic.run(cohort, part, order)

    return run
