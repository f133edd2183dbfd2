"""wgmma as instructions: what each reads, and which values share its accumulators.

Behind alcop-lower-mma, where a contraction is several `nvvm.wgmma.mma_async`, with
fences and commits of their own, or `alcop.warpgroup_mma` with A in registers. Its tiles
are found by its descriptors: they are computed as if each buffer began at address 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside, is_workgroup, root
from alcop_mlir.verifier.rings.descriptors import Matrix
from alcop_mlir.verifier.rings.unproven import Unproven
from alcop_mlir.verifier.values import is_computable

WGMMA = "nvvm.wgmma.mma_async"
HELD = "alcop.warpgroup_mma"  # with A in registers, and a fence of its own
_POINTER_CAST = "llvm.inttoptr"
_WRITTEN = {"nvvm.stmatrix": 0, "llvm.store": 1}  # the operand that is an address
POINTER = "memref.extract_aligned_pointer_as_index"
INLINE = "llvm.inline_asm"
_FOR, _IF, _YIELD = "scf.for", "scf.if", "scf.yield"
# These take registers apart and put them together: no instruction is left of them.
_REGISTERS = (
    "llvm.extractvalue",
    "llvm.insertvalue",
    "vector.from_elements",
    "vector.extract",
    "vector.insert",
)
_UNDEFINED = "llvm.mlir.undef"
_INIT = 0  # operand: accumulators; what of A and B there is follows
_DESCRIPTOR = -1  # of B, the last operand
_BOUNDS = 3  # operands of a loop, before what it carries
_SHAPE = re.compile(r"m = (\d+), n = (\d+), k = (\d+)")
_K_BYTES = 32
_ALONG_K = {"A": "row", "B": "col"}  # layouts of operands along K


def products(kernel: Any) -> list[Any]:
    """The wgmma of a kernel."""
    return [op for op in inside(kernel) if op.name in (WGMMA, HELD)]


def matrices(op: Any) -> tuple[Matrix, ...]:
    """A and B of a wgmma; B alone where A is in registers."""
    if op.name == HELD:
        _, n, k = op.attributes["shape"]
        is_transposed = op.attributes["transpose_b"].value == 1
        return (Matrix(n, _K_BYTES // k, not is_transposed),)
    found = _SHAPE.search(str(op.attributes["shape"]))
    if found is None:
        raise Unproven(op, "has no shape that is known")
    m, n, k = (int(one) for one in found.groups())
    size = _K_BYTES // k

    def is_along_k(name: str) -> bool:
        return _ALONG_K[name] in str(op.attributes[f"layout{name}"])

    return Matrix(m, size, is_along_k("A")), Matrix(n, size, is_along_k("B"))


def parts(op: Any) -> tuple[list[Any], Any]:
    """The descriptors of A and B of a wgmma, and the accumulators that it reads."""
    accumulators, *descriptors = op.operands
    if op.name == HELD:
        descriptors = [op.operands[_DESCRIPTOR]]
    return descriptors, accumulators


def tile(op: Any, descriptor: Any) -> Any:
    """The buffer that a descriptor of a wgmma is of."""
    found, pending, seen = set[Any](), [descriptor], set[Any]()
    while pending:
        value = pending.pop()
        owner = value.owner
        if value in seen or isinstance(owner, ir.Block):
            continue
        seen.add(value)
        maker = owner.operation
        if maker.name == POINTER:
            found.add(root(maker.operands[0]))
        elif is_computable(maker):
            pending += list(maker.operands)
    if len(found) != 1:
        raise Unproven(op, "reads by a descriptor of no buffer that is known")
    return found.pop()


def is_of_descriptors(op: Any) -> bool:
    """Whether the address that an op makes is used in descriptors of wgmma alone, and
    to write there.
    """
    is_shared = op.name == POINTER and is_workgroup(op.operands[0].type)
    return is_shared and _leads_to_wgmma(op.results[0])


def _leads_to_wgmma(value: Any) -> bool:
    for use in value.uses:
        user = use.owner.operation
        if user.name in (WGMMA, HELD) and use.operand_number > _INIT:
            continue
        if user.name == _POINTER_CAST:
            if all(_is_written(one) for one in user.results[0].uses):
                continue
        if not is_computable(user) or user.name == "arith.cmpi":
            return False
        if not all(_leads_to_wgmma(result) for result in user.results):
            return False
    return True


def _is_written(use: Any) -> bool:
    """Whether an address is used as the one that an op writes to."""
    return _WRITTEN.get(use.owner.operation.name) == use.operand_number


def is_text(op: Any) -> bool:
    """Whether an op is text of PTX that may do more than compute its result of numbers:
    nothing is known of it then.
    """
    pointers = any("ptr" in str(one.type) for one in op.operands)
    return op.name == INLINE and (pointers or "has_side_effects" in op.attributes)


def takes_registers_apart(op: Any) -> bool:
    """Whether an op is no instruction: it names registers of vectors or structs."""
    return op.name in _REGISTERS


def is_undefined(value: Any) -> bool:
    """Whether nothing was written to a value's registers."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name == _UNDEFINED


def accumulators(kernel: Any) -> dict[Any, Any]:
    """Values in the registers of accumulators, with one that stands for each set.

    Values that may be in the same registers are one set, whenever each is alive: what
    is true of the group that has written them last is so of those before.
    """
    sets: dict[Any, Any] = {}

    def first(value: Any) -> Any:
        while sets[value] != value:
            value = sets[value]
        return value

    def join(one: Any, other: Any) -> None:
        for value in (one, other):
            sets.setdefault(value, value)
        sets[first(one)] = first(other)

    pending: list[Any] = []
    for op in products(kernel):
        join(op.results[0], op.results[0])
        pending.append(op.results[0])
        if not is_undefined(op.operands[_INIT]):
            join(op.operands[_INIT], op.results[0])
            pending.append(op.operands[_INIT])
    _spread(pending, join)
    return {value: first(value) for value in sets}


def _spread(pending: list[Any], join: Callable[[Any, Any], None]) -> None:
    """Join values with those that they become."""
    seen = set[Any]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            for other in _becomes(use.owner.operation, use.operand_number):
                join(other, value)
                pending.append(other)


def _becomes(user: Any, number: int) -> Iterator[Any]:
    """What an operand is behind an op, in the same registers."""
    if user.name in _REGISTERS:
        yield from user.results
    elif user.name == _FOR and number >= _BOUNDS:
        yield user.regions[0].blocks[0].arguments[number - _BOUNDS + 1]
        yield user.results[number - _BOUNDS]
    elif user.name == _YIELD:
        holder = user.parent.operation
        if holder.name == _FOR:
            yield holder.regions[0].blocks[0].arguments[number + 1]
        if holder.name in (_FOR, _IF):
            yield holder.results[number]
