"""The opcodes of the emulator: one row for each, or for each form of it.

The only place that knows an opcode by its name: whatever else depends on the opcode of
an instruction asks its row. Rows stand in the order of the PTX ISA's chapters.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import integers as ints
from alcop_mlir.runtime.emulator.instructions import (
    async_arrival,
    async_copy,
    barriers,
    bulk_copy,
    convert,
    floating,
    fragment_multiply,
    integer,
    matrix_access,
    matrix_memory,
    matrix_multiply,
    mbarrier,
    memory,
    predicate,
    stack,
    tensor_copy,
    video,
    warp,
    warpgroup_multiply,
)
from alcop_mlir.runtime.emulator.instructions.opcode import Opcode, unsupported_form
from alcop_mlir.runtime.emulator.instructions.translator import (
    Handler,
    lanewise,
    own,
    word,
    wrapping,
)
from alcop_mlir.runtime.emulator.machine.loaded_kernel import MULTIPLY
from alcop_mlir.runtime.emulator.ptx.syntax import (
    SPACES,
    Instruction,
    unsupported,
)

_SHARED, _GLOBAL = frozenset({"shared"}), frozenset({"global"})
_GENERIC = frozenset(SPACES) - {"const"}  # those with a window in generic addresses
_NOWHERE: frozenset[str] = frozenset()


def _chapter(title: str, *rows: Opcode | Iterable[Opcode]) -> Iterator[Opcode]:
    """The rows of one chapter of the PTX ISA."""
    for row in rows:
        for one in (row,) if isinstance(row, Opcode) else row:
            yield replace(one, section=f"PTX ISA, {title}: {one.name}")


def _other(name: str, translate: Handler) -> Opcode:
    """Arithmetic on integers and bits."""
    return Opcode(name, translate, types="other")


def _float(name: str, translate: Handler) -> Opcode:
    return Opcode(name, translate, types="float", counted_as="float")


def _both(name: str, translate: Handler) -> Iterator[Opcode]:
    """One handler for all types."""
    yield _other(name, translate)
    yield _float(name, translate)


def _move(name: str, translate: Handler) -> Opcode:
    return Opcode(name, translate, counted_as="move")


def _warp(name: str, translate: Handler) -> Opcode:
    """An exchange among the lanes that a member mask names."""
    is_moved = name == "shfl.sync"
    return Opcode(name, translate, meets="members", selects=is_moved, counted_as="warp")


def _memory(
    name: str, translate: Handler, reads: bool = False, writes: bool = False
) -> Iterator[Opcode]:
    """An access: one row for each state space that the opcode may name, or for none."""
    for space in ("", *SPACES):
        spaces = frozenset({space}) if space else _GENERIC
        yield Opcode(
            name,
            translate,
            space=space,
            reads=spaces if reads else _NOWHERE,
            writes=spaces if writes else _NOWHERE,
            size=memory.accessed_bytes,
            counted_as=f"{space or 'generic'} memory",
        )


def _multiply(name: str, translate: Handler, *of: str) -> Opcode:
    return Opcode(
        name,
        translate,
        of=of,
        meets="warp",
        orders=True,
        selects=True,
        counted_as=MULTIPLY,
    )


def _warpgroup(name: str, translate: Handler) -> Opcode:
    """What says when a wgmma may begin, or has ended."""
    return Opcode(
        f"{name}.sync.aligned",
        translate,
        meets="warp",
        orders=True,
        target="sm_90a",
        counted_as="wgmma control",
    )


def _fragments(
    name: str, translate: Handler, reads: bool = False, writes: bool = False
) -> Iterator[Opcode]:
    """A load or store of a matrix by a warp as one."""
    for row in _memory(name, translate, reads, writes):
        size = matrix_memory.smallest_piece
        yield replace(row, size=size, meets="warp", orders=reads)


def _copy(name: str) -> Opcode:
    """A copy reads at any time before the wait, but the wait writes as well."""
    return Opcode(
        name,
        async_copy.issue_copy,
        reads=_GLOBAL,
        writes=_SHARED,
        size=async_copy.copied_bytes,
        counted_as="cp.async",
    )


def _copy_control(
    name: str, translate: Handler, writes: frozenset[str] = _NOWHERE
) -> Opcode:
    return Opcode(name, translate, writes=writes, counted_as="cp.async control")


def _barriers() -> Iterator[Opcode]:
    for unit in ("bar", "bar.cta", "barrier", "barrier.cta"):
        for form in ("sync", "arrive", "red"):
            yield Opcode(f"{unit}.{form}", ends="barrier", counted_as="barrier")


def _bulk(name: str, translate: Handler, **fields: Any) -> Opcode:
    return Opcode(name, translate, counted_as="bulk copy", **fields)


def _bulk_copies() -> Iterator[Opcode]:
    """Copies in both directions; the shared side moves in pieces of 16 bytes."""
    side = {"size": bulk_copy.chunk_bytes}
    to_shared = {**side, "reads": _GLOBAL, "writes": _SHARED}
    to_global = {**side, "reads": _SHARED, "writes": _GLOBAL}
    name = "cp.async.bulk"
    for shared in ("shared::cluster", "shared::cta"):
        yield _bulk(f"{name}.{shared}.global", bulk_copy.copy_in, **to_shared)
    yield _bulk(f"{name}.global.shared::cta", bulk_copy.copy_out, **to_global)
    reduced = "cp.reduce.async.bulk"
    yield _bulk(f"{reduced}.global.shared::cta", bulk_copy.copy_out, **to_global)
    for start in (name, reduced):
        both = {**side, "reads": _SHARED | _GLOBAL, "writes": _SHARED | _GLOBAL}
        yield _bulk(f"{start}.tensor", tensor_copy.copy_tensor, **both)
    yield _bulk(f"{name}.prefetch", convert.ignored)
    yield _bulk(f"{name}.commit_group", bulk_copy.commit_group)
    # What is copied out is read here.
    wait = {"reads": _SHARED, "writes": _GLOBAL}
    yield _bulk(f"{name}.wait_group", bulk_copy.wait_group, **side, **wait)


def _mbarrier(name: str, translate: Handler, **fields: Any) -> Opcode:
    return Opcode(
        f"mbarrier.{name}",
        translate,
        size=mbarrier.object_bytes,
        writes=_SHARED,
        counted_as="mbarrier",
        **fields,
    )


def _mbarriers() -> Iterator[Opcode]:
    yield _mbarrier("init", mbarrier.begin)
    yield _mbarrier("inval", mbarrier.end)
    yield _mbarrier("arrive", mbarrier.arrive)
    yield _mbarrier("arrive_drop", mbarrier.arrive)
    yield _mbarrier("expect_tx", mbarrier.count_bytes)
    yield _mbarrier("complete_tx", mbarrier.count_bytes)
    for wait in ("test_wait", "try_wait"):
        yield _mbarrier(wait, unsupported_form, ends="wait")
    yield Opcode(
        "mbarrier.pending_count", mbarrier.pending_count, counted_as="mbarrier"
    )
    yield replace(
        _copy_control("cp.async.mbarrier.arrive", async_arrival.issue, _SHARED),
        size=mbarrier.object_bytes,
    )


OPCODES = (
    *_chapter(
        "Integer Arithmetic Instructions",
        _other("add", integer.add_or_sub),
        _other("sub", integer.add_or_sub),
        _other("mul", integer.multiply),
        _other("mad", integer.multiply),
        _other("mul24", integer.multiply),
        _other("mad24", integer.multiply),
        _other("sad", lanewise(ints.add_difference, own, own, own)),
        _other("div", lanewise(ints.divide, own, own)),
        _other("rem", lanewise(ints.remainder, own, own)),
        _other("abs", lanewise(ints.absolute, own)),
        _other("neg", lanewise(ints.negative, wrapping)),
        _other("min", integer.min_or_max),
        _other("max", integer.min_or_max),
        _other("popc", lanewise(ints.count_ones, wrapping, to=word)),
        _other("clz", lanewise(ints.leading_zeros, wrapping, to=word)),
        _other("bfind", integer.find_highest),
        _other("fns", integer.find_set),
        _other("brev", lanewise(ints.reverse_bits, wrapping)),
        _other("bfe", lanewise(ints.extract_field, own, word, word)),
        _other("bfi", lanewise(ints.insert_field, own, own, word, word)),
        _other("szext", integer.extend_sign),
        _other("bmsk", integer.make_mask),
        _other("dp4a", integer.dot),
        _other("dp2a", integer.dot),
    ),
    *_chapter(
        "Extended-Precision Integer Arithmetic Instructions",
        _other("add.cc", integer.carry_chain),
        _other("addc", integer.carry_chain),
        _other("sub.cc", integer.carry_chain),
        _other("subc", integer.carry_chain),
        _other("mad.lo.cc", integer.carry_chain),
        _other("mad.hi.cc", integer.carry_chain),
        _other("madc", integer.carry_chain),
    ),
    # The half precision forms have a chapter of their own in the PTX ISA.
    *_chapter(
        "Floating-Point Instructions",
        _float("testp", floating.test_property),
        _float("copysign", floating.plain(lambda a, b: np.copysign(b, a), 2)),
        _float("add", floating.add_sub_mul),
        _float("sub", floating.add_sub_mul),
        _float("mul", floating.add_sub_mul),
        _float("fma", floating.fma),
        _float("mad", floating.fma),
        _float("div", floating.through_double(operator.truediv)),
        _float("abs", floating.sign_op(clear=True)),
        _float("neg", floating.sign_op(clear=False)),
        _float("min", floating.min_or_max),
        _float("max", floating.min_or_max),
        _float("rcp", floating.through_double(lambda x: 1 / x)),
        _float("rcp.approx.ftz.f64", floating.gross_double(lambda x: 1 / x)),
        _float("rsqrt.approx.ftz.f64", floating.gross_double(lambda x: 1 / np.sqrt(x))),
        _float("sqrt", floating.through_double(np.sqrt, is_rational=False)),
        _float("rsqrt", floating.in_double(lambda x: 1 / np.sqrt(x))),
        _float("sin", floating.in_double(np.sin)),
        _float("cos", floating.in_double(np.cos)),
        _float("lg2", floating.in_double(np.log2)),
        _float("ex2", floating.in_double(np.exp2)),
        _float("tanh", floating.in_double(np.tanh)),
    ),
    *_chapter(
        "Comparison and Selection Instructions",
        _both("set", predicate.set_value),
        _both("setp", predicate.set_predicate),
        replace(_move("selp", predicate.select), selects=True),
        _move("slct", predicate.select_by_sign),
    ),
    *_chapter(
        "Logic and Shift Instructions",
        replace(_other("and", lanewise(np.bitwise_and, own, own)), selects=True),
        replace(_other("or", lanewise(np.bitwise_or, own, own)), selects=True),
        _other("xor", lanewise(np.bitwise_xor, own, own)),
        _other("not", lanewise(np.invert, own)),
        _other("cnot", lanewise(ints.logical_not, wrapping)),
        _other("lop3", integer.logic3),
        _other("shf", integer.shift_funnel),
        _other("shl", integer.shift_bits),
        _other("shr", integer.shift_bits),
    ),
    *_chapter(
        "Data Movement and Conversion Instructions",
        _move("mov", convert.move),
        _warp("shfl.sync", warp.shuffle),
        replace(_other("prmt", integer.permute_bytes), counted_as="move"),
        _memory("ld", memory.load, reads=True),
        _memory("ldu", memory.load, reads=True),
        _memory("st", memory.store, writes=True),
        Opcode("prefetch", convert.ignored),
        Opcode("prefetchu", convert.ignored),
        Opcode("applypriority", convert.ignored),
        Opcode("discard", convert.ignored),
        _move("createpolicy", convert.make_policy),
        Opcode("isspacep", convert.is_in_space),
        _move("cvta", convert.convert_address),
        _move("cvt", convert.convert),
        _move("cvt.pack", convert.convert_and_pack),
        _copy("cp.async.ca"),
        _copy("cp.async.cg"),
        _copy_control("cp.async.commit_group", async_copy.commit_group),
        # The copies land here.
        _copy_control("cp.async.wait_group", async_copy.wait_group, _SHARED),
        _copy_control("cp.async.wait_all", async_copy.wait_all, _SHARED),
        _bulk_copies(),
    ),
    *_chapter(
        "Control Flow Instructions",
        Opcode("bra", ends="branch", counted_as="branch"),
        Opcode("brx.idx", ends="table", counted_as="branch"),
        Opcode("ret", ends="return", counted_as="branch"),
        Opcode("exit", ends="exit", counted_as="branch"),
        Opcode("call", ends="call", counted_as="branch"),
    ),
    *_chapter(
        "Parallel Synchronization and Communication Instructions",
        _barriers(),
        # The only one that PTX promises to order lanes. It does so itself: only those
        # that name each other are ordered.
        Opcode(
            "bar.warp.sync",
            barriers.translate_warp_barrier,
            meets="members",
            counted_as="barrier",
        ),
        Opcode("membar", barriers.translate_fence, counted_as="barrier"),
        Opcode("fence", barriers.translate_fence, counted_as="barrier"),
        _mbarriers(),
        _memory("atom", memory.update_memory, reads=True, writes=True),
        _memory("red", memory.update_memory, reads=True, writes=True),
        _warp("vote.sync", warp.vote),
        # As CUB's inline assembly spells it.
        *(_warp(f"vote.{mode}.sync", warp.vote) for mode in warp.VOTES),
        _warp("match.any.sync", warp.match_values),
        _warp("match.all.sync", warp.match_values),
        replace(_warp("activemask", warp.active_mask), meets=""),
        _warp("redux.sync", warp.reduce_values),
        _warp("elect.sync", warp.elect),
    ),
    # A warp that has executed one of these as one has issued all that came before, so
    # they order its lanes; but stmatrix does not order what it writes itself.
    *_chapter(
        "Warp Level Matrix Multiply-Accumulate Instructions",
        _fragments("wmma.load", matrix_memory.load_fragment, reads=True),
        _fragments("wmma.store", matrix_memory.store_fragment, writes=True),
        _multiply("wmma.mma", fragment_multiply.multiply_wmma),
        _multiply("mma.sync.aligned", matrix_multiply.multiply),
        # The shapes and types that do not fill the fragments of the row before.
        *(
            _multiply(f"mma.sync.aligned.{shape}", fragment_multiply.multiply_any)
            for shape in ("m8n8k4", "m8n8k16", "m8n8k32", "m16n8k64")
        ),
        *(
            _multiply(f"mma.sync.aligned.{shape}", fragment_multiply.multiply_any)
            for shape in ("m8n8k128", "m16n8k128", "m16n8k256")
        ),
        _multiply(
            "mma.sync.aligned.m16n8k32", fragment_multiply.multiply_any, "s4", "u4"
        ),
        _multiply("mma.sp.sync.aligned", fragment_multiply.multiply_sparse),
        _multiply(
            "mma.sp::ordered_metadata.sync.aligned", fragment_multiply.multiply_sparse
        ),
        Opcode(
            "ldmatrix.sync.aligned",
            matrix_access.load_matrix,
            reads=_SHARED,
            meets="warp",
            orders=True,
            counted_as="ldmatrix",
        ),
        Opcode(
            "stmatrix.sync.aligned",
            matrix_access.store_matrix,
            writes=_SHARED,
            meets="warp",
            counted_as="stmatrix",
        ),
        Opcode(
            "movmatrix.sync.aligned",
            matrix_access.move_matrix,
            meets="warp",
            orders=True,
        ),
    ),
    *_chapter(
        "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions",
        Opcode(
            "wgmma.mma_async.sync.aligned",
            warpgroup_multiply.multiply,
            reads=_SHARED,
            meets="warp",
            orders=True,
            target="sm_90a",
            counted_as=MULTIPLY,
        ),
        Opcode("wgmma.mma_async.sp", warpgroup_multiply.refuse_sparse),
        _warpgroup("wgmma.fence", warpgroup_multiply.fence),
        _warpgroup("wgmma.commit_group", warpgroup_multiply.commit_group),
        # What is waited for is read here at the latest.
        replace(
            _warpgroup("wgmma.wait_group", warpgroup_multiply.wait_group),
            reads=_SHARED,
        ),
    ),
    *_chapter(
        "Stack Manipulation Instructions",
        _other("alloca", stack.allocate),
        _other("stacksave", stack.save),
        _other("stackrestore", stack.restore),
    ),
    *_chapter(
        "Video Instructions",
        *(
            Opcode(name, video.compute_part)
            for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
        ),
        Opcode("vshl", video.shift_part),
        Opcode("vshr", video.shift_part),
        Opcode("vmad", video.multiply_add_part),
        Opcode("vset", video.compare_part),
        *(
            Opcode(f"{name}{count}", video.compute_parts)
            for count in (2, 4)
            for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")
        ),
        Opcode("vset2", video.compare_parts),
        Opcode("vset4", video.compare_parts),
    ),
    *_chapter(
        "Miscellaneous Instructions",
        Opcode("nanosleep", convert.ignored),
        Opcode("setmaxnreg", ends="registers", counted_as="barrier"),
        Opcode("griddepcontrol", convert.ignored),
        Opcode("pmevent", convert.ignored),
        Opcode("brkpt", convert.ignored),  # there is no debugger
        Opcode("trap", ends="trap"),
    ),
)


def _by_name(rows: Iterable[Opcode]) -> dict[tuple[str, ...], list[Opcode]]:
    found: defaultdict[tuple[str, ...], list[Opcode]] = defaultdict(list)
    for row in rows:
        found[tuple(row.name.split("."))].append(row)
    return dict(found)


_ROWS = _by_name(OPCODES)
_LONGEST = max(map(len, _ROWS))
_FIRST = {name[0] for name in _ROWS}


def opcode_of(ins: Instruction) -> Opcode:
    """The row of an instruction, the one with the longest name that fits.

    Raises `EmulationError` for an opcode outside the subset. A form of a known opcode
    gets a row all the same, whose handler raises.
    """
    parts = ins.parts
    if parts[0] not in _FIRST:
        raise unsupported(ins)
    # Where the block is a cluster of its own, the copy engine needs no other.
    is_remote = "shared::cluster" in parts and parts[0] not in ("cp", "mbarrier")
    if is_remote or parts[:2] == ("barrier", "cluster"):
        raise unsupported(ins, "thread block clusters")
    for count in range(_LONGEST, 0, -1):
        for row in _ROWS.get(parts[:count], ()):
            if row.fits(parts):
                return row
    return Opcode(parts[0])
