"""The opcodes of the emulator: one row for each, or for each form of it.

The only place, with `async_rows`, that knows an opcode by its name: whatever else
depends on the opcode of an instruction asks its row. Rows stand in the order of the PTX
ISA's chapters.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import integers as ints
from alcop_mlir.runtime.emulator.arithmetic.floats import fma_f32
from alcop_mlir.runtime.emulator.instructions import (
    atomics,
    barriers,
    cluster,
    convert,
    floating,
    fragment_multiply,
    integer,
    matrix_access,
    matrix_memory,
    matrix_multiply,
    memory,
    predicate,
    stack,
    video,
    warp,
    warpgroup_multiply,
)
from alcop_mlir.runtime.emulator.instructions.copies import (
    async_copy,
)
from alcop_mlir.runtime.emulator.instructions.opcodes.async_rows import (
    barrier_rows,
    bulk_rows,
    cluster_rows,
    mbarrier_rows,
)
from alcop_mlir.runtime.emulator.instructions.opcodes.opcode import (
    Opcode,
    unsupported_form,
)
from alcop_mlir.runtime.emulator.instructions.opcodes.row_kinds import (
    SHARED,
    both,
    chapter,
    copies,
    copy_control,
    exchange,
    floats,
    fragments,
    memory_rows,
    moves,
    multiplies,
    on_singles,
    other,
    warpgroup_control,
)
from alcop_mlir.runtime.emulator.instructions.translator import (
    lanewise,
    own,
    word,
    wrapping,
)
from alcop_mlir.runtime.emulator.machine.loaded_kernel import MULTIPLY
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    unsupported,
)

OPCODES = (
    *chapter(
        "Integer Arithmetic Instructions",
        other("add", integer.add_or_sub),
        other("sub", integer.add_or_sub),
        other("mul", integer.multiply),
        other("mad", integer.multiply),
        other("mul24", integer.multiply),
        other("mad24", integer.multiply),
        other("sad", lanewise(ints.add_difference, own, own, own)),
        other("div", lanewise(ints.divide, own, own)),
        other("rem", lanewise(ints.remainder, own, own)),
        other("abs", lanewise(ints.absolute, own)),
        other("neg", lanewise(ints.negative, wrapping)),
        other("min", integer.min_or_max),
        other("max", integer.min_or_max),
        other("popc", lanewise(ints.count_ones, wrapping, to=word)),
        other("clz", lanewise(ints.leading_zeros, wrapping, to=word)),
        other("bfind", integer.find_highest),
        other("fns", integer.find_set),
        other("brev", lanewise(ints.reverse_bits, wrapping)),
        other("bfe", lanewise(ints.extract_field, own, word, word)),
        other("bfi", lanewise(ints.insert_field, own, own, word, word)),
        other("szext", integer.extend_sign),
        other("bmsk", integer.make_mask),
        other("dp4a", integer.dot),
        other("dp2a", integer.dot),
    ),
    *chapter(
        "Extended-Precision Integer Arithmetic Instructions",
        other("add.cc", integer.carry_chain),
        other("addc", integer.carry_chain),
        other("sub.cc", integer.carry_chain),
        other("subc", integer.carry_chain),
        other("mad.lo.cc", integer.carry_chain),
        other("mad.hi.cc", integer.carry_chain),
        other("madc", integer.carry_chain),
    ),
    # The half precision forms have a chapter of their own in the PTX ISA.
    *chapter(
        "Floating-Point Instructions",
        floats("testp", floating.test_property),
        floats("copysign", floating.plain(lambda a, b: np.copysign(b, a), 2)),
        floats("add", floating.add_sub_mul),
        floats("sub", floating.add_sub_mul),
        floats("mul", floating.add_sub_mul),
        floats("fma", floating.fma),
        on_singles("add", operator.add, 2, "", ".rn"),
        on_singles("sub", operator.sub, 2, "", ".rn"),
        on_singles("mul", operator.mul, 2, "", ".rn"),
        on_singles("fma", fma_f32, 3, ".rn"),
        floats("mad", floating.fma),
        floats("div", floating.through_double(operator.truediv)),
        floats("abs", floating.sign_op(clear=True)),
        floats("neg", floating.sign_op(clear=False)),
        floats("min", floating.min_or_max),
        floats("max", floating.min_or_max),
        floats("rcp", floating.through_double(lambda x: 1 / x)),
        floats("rcp.approx.ftz.f64", floating.gross_double(lambda x: 1 / x)),
        floats("rsqrt.approx.ftz.f64", floating.gross_double(lambda x: 1 / np.sqrt(x))),
        floats("sqrt", floating.through_double(np.sqrt, is_rational=False)),
        floats("rsqrt", floating.in_double(lambda x: 1 / np.sqrt(x))),
        floats("sin", floating.in_double(np.sin)),
        floats("cos", floating.in_double(np.cos)),
        floats("lg2", floating.in_double(np.log2)),
        floats("ex2", floating.in_double(np.exp2)),
        floats("tanh", floating.in_double(np.tanh)),
    ),
    *chapter(
        "Comparison and Selection Instructions",
        both("set", predicate.set_value),
        both("setp", predicate.set_predicate),
        replace(moves("selp", predicate.select), selects=True),
        moves("slct", predicate.select_by_sign),
    ),
    *chapter(
        "Logic and Shift Instructions",
        replace(other("and", lanewise(np.bitwise_and, own, own)), selects=True),
        replace(other("or", lanewise(np.bitwise_or, own, own)), selects=True),
        other("xor", lanewise(np.bitwise_xor, own, own)),
        other("not", lanewise(np.invert, own)),
        other("cnot", lanewise(ints.logical_not, wrapping)),
        other("lop3", integer.logic3),
        other("shf", integer.shift_funnel),
        other("shl", integer.shift_bits),
        other("shr", integer.shift_bits),
    ),
    *chapter(
        "Data Movement and Conversion Instructions",
        moves("mov", convert.move),
        exchange("shfl.sync", warp.shuffle),
        replace(other("prmt", integer.permute_bytes), counted_as="move"),
        memory_rows("ld", memory.load, reads=True),
        memory_rows("ldu", memory.load, reads=True),
        memory_rows("st", memory.store, writes=True),
        Opcode("prefetch", convert.ignored),
        Opcode("prefetchu", convert.ignored),
        Opcode("applypriority", convert.ignored),
        Opcode("discard", convert.ignored),
        moves("createpolicy", convert.make_policy),
        Opcode("isspacep", convert.is_in_space),
        Opcode("isspacep.shared", cluster.is_in_shared),
        Opcode("isspacep.shared::cta", cluster.is_in_shared),
        Opcode("isspacep.shared::cluster", cluster.is_in_shared),
        moves("mapa", cluster.map_address),
        moves("getctarank", cluster.find_rank),
        moves("cvta", convert.convert_address),
        moves("cvt", convert.convert),
        moves("cvt.pack", convert.convert_and_pack),
        copies("cp.async.ca"),
        copies("cp.async.cg"),
        copy_control("cp.async.commit_group", async_copy.commit_group),
        # The copies land here.
        copy_control("cp.async.wait_group", async_copy.wait_group, SHARED),
        copy_control("cp.async.wait_all", async_copy.wait_all, SHARED),
        bulk_rows(),
    ),
    *chapter(
        "Control Flow Instructions",
        Opcode("bra", ends="branch", counted_as="branch"),
        Opcode("brx.idx", ends="table", counted_as="branch"),
        Opcode("ret", ends="return", counted_as="branch"),
        Opcode("exit", ends="exit", counted_as="branch"),
        Opcode("call", ends="call", counted_as="branch"),
    ),
    *chapter(
        "Parallel Synchronization and Communication Instructions",
        barrier_rows(),
        cluster_rows(),
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
        mbarrier_rows(),
        memory_rows("atom", atomics.update_memory, reads=True, writes=True),
        memory_rows("red", atomics.update_memory, reads=True, writes=True),
        exchange("vote.sync", warp.vote),
        exchange("match.any.sync", warp.match_values),
        exchange("match.all.sync", warp.match_values),
        replace(exchange("activemask", warp.active_mask), meets=""),
        exchange("redux.sync", warp.reduce_values),
        exchange("elect.sync", warp.elect),
    ),
    # A warp that has executed one of these as one has issued all that came before, so
    # they order its lanes; but stmatrix does not order what it writes itself.
    *chapter(
        "Warp Level Matrix Multiply-Accumulate Instructions",
        fragments("wmma.load", matrix_memory.load_fragment, reads=True),
        fragments("wmma.store", matrix_memory.store_fragment, writes=True),
        multiplies("wmma.mma", fragment_multiply.multiply_wmma),
        multiplies("mma.sync.aligned", matrix_multiply.multiply),
        # The shapes and types that do not fill the fragments of the row before.
        *(
            multiplies(f"mma.sync.aligned.{shape}", fragment_multiply.multiply_any)
            for shape in ("m8n8k4", "m8n8k16", "m8n8k32", "m16n8k64")
        ),
        *(
            multiplies(f"mma.sync.aligned.{shape}", fragment_multiply.multiply_any)
            for shape in ("m8n8k128", "m16n8k128", "m16n8k256")
        ),
        multiplies(
            "mma.sync.aligned.m16n8k32", fragment_multiply.multiply_any, "s4", "u4"
        ),
        *(
            multiplies(
                f"mma.sync.aligned.{shape}", fragment_multiply.multiply_any, "f64"
            )
            for shape in ("m16n8k4", "m16n8k8", "m16n8k16")
        ),
        multiplies("mma.sp.sync.aligned", fragment_multiply.multiply_sparse),
        multiplies(
            "mma.sp::ordered_metadata.sync.aligned", fragment_multiply.multiply_sparse
        ),
        Opcode(
            "ldmatrix.sync.aligned",
            matrix_access.load_matrix,
            reads=SHARED,
            meets="warp",
            orders=True,
            counted_as="ldmatrix",
        ),
        Opcode(
            "stmatrix.sync.aligned",
            matrix_access.store_matrix,
            writes=SHARED,
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
    *chapter(
        "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions",
        Opcode(
            "wgmma.mma_async.sync.aligned",
            warpgroup_multiply.multiply,
            reads=SHARED,
            meets="warp",
            orders=True,
            target="sm_90a",
            counted_as=MULTIPLY,
        ),
        Opcode("wgmma.mma_async.sp", warpgroup_multiply.refuse_sparse),
        warpgroup_control("wgmma.fence", warpgroup_multiply.fence),
        warpgroup_control("wgmma.commit_group", warpgroup_multiply.commit_group),
        # What is waited for is read here at the latest.
        replace(
            warpgroup_control("wgmma.wait_group", unsupported_form),
            reads=SHARED,
            ends="multiply",
        ),
    ),
    *chapter(
        "Stack Manipulation Instructions",
        other("alloca", stack.allocate),
        other("stacksave", stack.save),
        other("stackrestore", stack.restore),
    ),
    *chapter(
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
    *chapter(
        "Miscellaneous Instructions",
        Opcode("nanosleep", convert.ignored),
        Opcode("setmaxnreg", ends="registers", target="sm_90a", counted_as="barrier"),
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
    for count in range(_LONGEST, 0, -1):
        for row in _ROWS.get(parts[:count], ()):
            if row.fits(parts):
                return row
    return Opcode(parts[0])
