"""Memrefs: their allocation, their memory space, and which ops read and write them.

What an op reads and writes is asked of one memref, or of an op with all that is in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from alcop_mlir.analysis.ir.kernels import KERNEL_OPS
from alcop_mlir.analysis.ir.loops import defining_op, made_by, without
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.slices import touches_no_memory
from alcop_mlir.analysis.ir.synchronisation import SYNCHRONISATION
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

WORKGROUP_SPACES = ("#gpu.address_space<workgroup>", "3 : i64", "3 : i32", "3")
# Block arguments of a gpu.launch before its attributions: ids and sizes along x, y, z.
LAUNCH_ARGUMENTS = 12
# Views whose type follows from that of what they view.
DERIVED_VIEWS = frozenset(
    "memref.subview memref.cast memref.collapse_shape memref.expand_shape "
    "memref.transpose memref.assume_alignment".split()
)
# Also views that set offset and strides, or change the memory space; and matrices that
# are never made.
VIEW_OPS = DERIVED_VIEWS | frozenset(
    "memref.reinterpret_cast memref.view memref.memory_space_cast alcop.im2col "
    "alcop.take alcop.rows".split()
)
ALLOCATIONS = ("memref.alloc", "memref.alloca")
_DISTINCT = "memref.distinct_objects"
NOALIAS = "llvm.noalias"
# Operand numbers that an op reads from and writes to; of memrefs, and of mbarriers.
_READS = {
    "memref.load": (0,),
    "vector.load": (0,),
    "vector.transfer_read": (0,),
    "vector.maskedload": (0,),
    "nvgpu.ldmatrix": (0,),
    "gpu.subgroup_mma_load_matrix": (0,),
    "memref.atomic_rmw": (1,),
    "memref.generic_atomic_rmw": (0,),
    "memref.copy": (0,),
    "linalg.copy": (0,),
    "alcop.async_copy": (0,),
    "alcop.copy": (0,),
    "alcop.async_gather": (0,),
    "alcop.gather": (0,),
}
_WRITES = {
    "memref.store": (1,),
    "vector.store": (1,),
    "vector.transfer_write": (1,),
    "vector.maskedstore": (0,),
    "gpu.subgroup_mma_store_matrix": (1,),
    "memref.atomic_rmw": (1,),
    "memref.generic_atomic_rmw": (0,),
    "memref.copy": (1,),
    "linalg.copy": (1,),
    "linalg.fill": (1,),
    "alcop.async_copy": (1,),
    "alcop.copy": (1,),
    "alcop.async_gather": (1,),
    "alcop.gather": (1,),
    "nvgpu.device_async_copy": (0,),
    "nvgpu.mbarrier.init": (0,),
    "nvgpu.mbarrier.arrive": (0,),
    "nvgpu.mbarrier.arrive.nocomplete": (0,),
    "nvgpu.mbarrier.test.wait": (0,),
    "nvgpu.mbarrier.try_wait.parity": (0,),
}
_GENERIC = "linalg.generic"
_ACCESSES = frozenset((*_READS, *_WRITES, _GENERIC))
# Ops that touch no memory through a memref of theirs.
_NO_ACCESS = frozenset(("memref.dealloc",))
_SYNCHRONISATION = frozenset(SYNCHRONISATION) | frozenset(
    """
    gpu.terminator gpu.return func.return scf.yield
    memref.alloc memref.alloca nvgpu.mbarrier.create
    alcop.producer_commit alcop.consumer_wait alcop.producer_acquire
    alcop.consumer_release
    """.split()
)
# Ops with regions, and what ends these: the ops inside are visited themselves.
_HOLDERS = frozenset(
    "scf.for scf.if scf.while scf.condition scf.execute_region scf.index_switch "
    "scf.forall scf.forall.in_parallel scf.parallel scf.reduce "
    "affine.for affine.if affine.yield memref.atomic_yield".split()
)


# Whether a memory space is workgroup memory, by its context and its address there, its
# hash: to print one takes ten times as long. An attribute lives as its context does.
_SPACES: WeakKeyDictionary[Any, dict[int, bool]] = WeakKeyDictionary()


@frozen
class Access:
    """One use of a buffer by `op`, which reads or writes it."""

    op: Any
    reads: bool
    writes: bool


@frozen
class Touch:
    """`op` reads or writes what it knows as `memref`; None for any memory."""

    op: Any
    memref: Any | None
    writes: bool


def is_workgroup(kind: ir.Type) -> bool:
    """Whether a type is a memref in workgroup memory."""
    space = kind.memory_space if isinstance(kind, ir.MemRefType) else None
    return space is not None and _is_workgroup_space(space)


def _is_workgroup_space(space: ir.Attribute) -> bool:
    known = _SPACES.setdefault(space.context, {})
    address = hash(space)
    if address not in known:
        known[address] = str(space) in WORKGROUP_SPACES
    return known[address]


def root(memref: ir.Value) -> Any:
    """The memref that `memref` is a view of: an allocation or a block argument."""
    return without(memref, *VIEW_OPS)


def accesses(buffer: ir.Value) -> list[Access] | Any:
    """All reads and writes of `buffer` and its views, in the order of the uses.

    If a use is not understood, its op is returned instead of a list.
    """
    found: list[Access] = []
    pending = [buffer]
    while pending:
        memref = pending.pop()
        for use in memref.uses:
            op = use.owner.operation
            reads, writes = _access(op, use.operand_number)
            if op.name in DERIVED_VIEWS:
                pending.extend(op.results)
            elif reads or writes:
                found.append(Access(op, reads, writes))
            elif op.name not in _NO_ACCESS:
                return op
    return found


def touches_in(
    op: ir.Operation, enter: Callable[[Any], bool] = lambda _: True
) -> list[Touch]:
    """What `op` and its regions may read and write, in the order of the program.

    enter: whether to look inside an op
    """
    if not len(op.operation.regions):
        return touches(op.operation)

    # Bodies of linalg ops compute elements of operands; they may load others besides.
    return [
        touch
        for inner in walk(op, enter=enter)
        if not _is_of_body(inner)
        for touch in touches(inner)
    ]


def _is_of_body(op: ir.Operation) -> bool:
    """Whether it is part of a linalg op, and touches no memory itself."""
    return op.name in ("linalg.yield", "linalg.index")


def touches(op: ir.Operation) -> list[Touch]:
    """What `op` itself, without the ops in its regions, may read and write."""
    name = op.name
    touched = _touched_operands(op) if name in _ACCESSES else ()
    if touched:
        return [Touch(op, op.operands[number], writes) for number, writes in touched]
    if name in _SYNCHRONISATION or name in _HOLDERS or touches_no_memory(op):
        return []
    return [Touch(op, None, True)]


def written_memrefs(op: ir.Operation) -> list[tuple[Any, Any | None]]:
    """What `op` and its regions may write: (writer, memref), None if unknown."""
    return [(touch.op, touch.memref) for touch in touches_in(op) if touch.writes]


def written_roots(op: ir.Operation) -> list[tuple[Any, Any | None]]:
    """As `written_memrefs`, but the roots of the memrefs."""
    return [
        (writer, None if target is None else root(target))
        for writer, target in written_memrefs(op)
    ]


def shared_roots_in(op: ir.Operation) -> set[Any]:
    """The workgroup buffers that `op` and its regions use."""
    used = {value for inner in walk(op) for value in inner.operands}
    return {root(value) for value in used if is_workgroup(value.type)}


def is_private(memref: ir.Value) -> bool:
    """Whether each thread has a buffer of its own: one on the stack of a kernel."""
    op = made_by(memref, "memref.alloca")
    return op is not None and any(one.name in KERNEL_OPS for one in around(op))


def may_alias(one: ir.Value, other: ir.Value, noalias_arguments: bool) -> bool:
    """Whether two memrefs may overlap.

    Static subviews of one memref may be apart, and so are the results of one
    `memref.distinct_objects`, shared and global memory, and two objects of which one is
    an allocation or an argument with `llvm.noalias` (LLVM's promise: what is accessed
    through it and written is accessed through nothing else). Arguments and globals may
    alias each other unless `noalias_arguments` excludes it. A memref of which it is not
    known what it views may be any that escapes. An mbarrier is no memref's memory.
    """
    memrefs = [isinstance(value.type, ir.MemRefType) for value in (one, other)]
    if not all(memrefs):
        return not any(memrefs)
    if _are_apart_always(one, other) or _are_distinct(one, other):
        return False
    one, other = _object(one), _object(other)
    if one == other:
        return True
    if is_workgroup(one.type) != is_workgroup(other.type):
        return False
    for memref, second in ((one, other), (other, one)):
        if _is_object(second):
            if is_own_allocation(memref) or has_noalias(memref):
                return False
        elif is_own_allocation(memref) and isinstance(accesses(memref), list):
            return False
    if not (_is_object(one) and _is_object(other)):
        return True
    names = [_global_name(memref) for memref in (one, other)]
    return names[0] == names[1] if all(names) else not noalias_arguments


def _are_apart_always(one: ir.Value, other: ir.Value) -> bool:
    """Whether `are_apart` holds in all iterations of loops: of one whole object."""
    found = _static_ranges(one)
    return found is not None and is_whole(found[0]) and are_apart(one, other)


def is_whole(memref: ir.Value) -> bool:
    """Whether `memref` is an object whose elements have an address each."""
    return _is_object(memref) and follows_shape(memref.type)


def _are_distinct(one: ir.Value, other: ir.Value) -> bool:
    """Whether both view results of one `memref.distinct_objects`, and not the same."""
    first, second = root(one), root(other)
    op = made_by(first, _DISTINCT)
    if op is None or first == second or second not in op.results:
        return False
    # Else they are distinct in each iteration of a loop, but not across iterations.
    return all(_is_object(_object(memref)) for memref in op.operands)


def _object(memref: ir.Value) -> Any:
    """As `root`, but seen through `memref.distinct_objects` too."""
    memref = root(memref)
    while (op := made_by(memref, _DISTINCT)) is not None:
        memref = root(op.operands[memref.result_number])
    return memref


def _is_object(memref: ir.Value) -> bool:
    """Whether a root is an allocation, a global, or an argument of a function."""
    if is_own_allocation(memref) or _global_name(memref):
        return True
    return defining_op(memref) is None and _function_of(memref) is not None


def _function_of(argument: ir.Value) -> Any | None:
    """The function that a block argument is an argument of, or None."""
    function = argument.owner.owner
    if function is None or "function_type" not in function.operation.attributes:
        return None
    return function.operation


def has_noalias(memref: ir.Value) -> bool:
    """Whether `memref` is an argument with the attribute `llvm.noalias`."""
    function = None if defining_op(memref) else _function_of(memref)
    if function is None or "arg_attrs" not in function.attributes:
        return False
    of_arguments = list(function.attributes["arg_attrs"])
    number = memref.arg_number
    # Attributions come after the arguments, and have no attributes here.
    return number < len(of_arguments) and NOALIAS in ir.DictAttr(of_arguments[number])


def _global_name(memref: ir.Value) -> str:
    """The name of the `memref.global` that `memref` is, "" for others."""
    op = made_by(memref, "memref.get_global")
    return "" if op is None else op.attributes["name"].value


def are_apart(one: ir.Value, other: ir.Value) -> bool:
    """Whether both are static subviews of one memref that have no element in common.

    Of one value: in a loop it may be another memref in the next iteration.
    """
    first, second = _static_ranges(one), _static_ranges(other)
    if first is None or second is None or first[0] != second[0]:
        return False
    pairs = zip(first[1], second[1], strict=True)
    return any(a.stop <= b.start or b.stop <= a.start for a, b in pairs)


def _static_ranges(view: ir.Value) -> tuple[ir.Value, list[range]] | None:
    """The source of a subview, and the indices that it takes along each dimension."""
    op = defining_op(view)
    if op is None or op.operation.name != "memref.subview" or len(op.operands) > 1:
        return None
    offsets, sizes, strides = (
        list(op.attributes[f"static_{name}"])
        for name in ("offsets", "sizes", "strides")
    )
    ranges = [
        range(offset, offset + (size - 1) * stride + 1)
        for offset, size, stride in zip(offsets, sizes, strides, strict=True)
    ]
    return op.operands[0], ranges


def is_own_allocation(memref: ir.Value) -> bool:
    """Whether only `memref` and its views refer to its memory.

    True for an allocation, and for a workgroup attribution of a `gpu.func` or a
    `gpu.launch`.
    """
    owner = defining_op(memref)
    if owner is not None:
        return owner.name in ALLOCATIONS
    kernel = memref.owner.owner.operation
    if kernel.name == "gpu.launch":
        return memref.arg_number >= LAUNCH_ARGUMENTS
    if kernel.name != "gpu.func":
        return False
    inputs = ir.FunctionType(kernel.attributes["function_type"].value).inputs
    return memref.arg_number >= len(inputs)


def _access(op: ir.Operation, number: int) -> tuple[bool, bool]:
    """Whether `op` reads and writes through its operand of that number."""
    if op.name == _GENERIC:
        inputs, _ = op.attributes["operandSegmentSizes"]
        used = any(True for _ in op.regions[0].blocks[0].arguments[number].uses)
        return used, number >= inputs
    if op.name == "nvgpu.device_async_copy":
        return number != 0, number == 0
    return number in _READS.get(op.name, ()), number in _WRITES.get(op.name, ())


def _touched_operands(op: ir.Operation) -> list[tuple[int, bool]]:
    """The numbers of the operands that `op` reads and writes, and whether it writes."""
    name = op.name
    written = _WRITES.get(name, ())
    read = _READS.get(name, ())
    if name == _GENERIC:
        inputs, outputs = op.attributes["operandSegmentSizes"]
        read, written = range(inputs), range(inputs, inputs + outputs)
    if name == "nvgpu.device_async_copy":
        read = (1 + op.attributes["operandSegmentSizes"][1],)
    return [*((n, False) for n in read), *((n, True) for n in written)]


def size_in_bytes(kind: ir.Type) -> int | None:
    """Bytes of a static, contiguous memref type; None where they are not known."""
    if not kind.has_static_shape:
        return None
    width = element_bits(kind.element_type)
    return None if width is None else -(-math.prod(kind.shape) * width // 8)


def element_bits(kind: ir.Type) -> int | None:
    """Width of an integer, float or index element type; None for others."""
    if isinstance(kind, ir.IndexType):
        return 64
    return getattr(kind, "width", None)
