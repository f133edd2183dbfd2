"""The table of opcodes: complete, the only one, and each of its columns matters."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_text import run_kernel

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime import emulator
from alcop_mlir.runtime.emulator.instructions.opcodes import async_rows, table
from alcop_mlir.runtime.emulator.instructions.opcodes.opcode import (
    Opcode,
    unsupported_form,
)

FAMILIES = [
    module
    for module in {**vars(async_rows), **vars(table)}.values()
    if inspect.ismodule(module) and ".instructions." in module.__name__
]
PACKAGE = Path(emulator.__file__).parent
CHAPTERS = {
    "Integer Arithmetic": "mad24 bfind dp4a",
    "Extended-Precision Integer Arithmetic": "add.cc madc",
    "Floating-Point": "fma testp tanh",
    "Comparison and Selection": "setp slct",
    "Logic and Shift": "lop3 shr",
    "Data Movement and Conversion": "cp.async.wait_group shfl.sync cvta",
    "Control Flow": "brx.idx exit call",
    "Stack Manipulation": "alloca stackrestore",
    "Parallel Synchronization and Communication": "bar.cta.red atom elect.sync",
    "Warp Level Matrix Multiply-Accumulate": "ldmatrix.sync.aligned",
    "Asynchronous Warpgroup Level Matrix Multiply-Accumulate": (
        "wgmma.mma_async.sync.aligned wgmma.wait_group.sync.aligned"
    ),
    "Video": "vmad vset4",
    "Miscellaneous": "trap nanosleep",
}
# Opcodes with modifiers: state spaces read and written, and the class.
ACCESSES = {
    "ld.shared::cta.v4.f32": ("shared", "", "shared memory"),
    "ld.volatile.local.u32": ("local", "", "local memory"),
    "ld.param.u64": ("param", "", "param memory"),
    "ld.const.b8": ("const", "", "const memory"),
    "ld.u32": ("shared local global param", "", "generic memory"),
    "ldu.global.u32": ("global", "", "global memory"),
    "st.relaxed.gpu.global.u32": ("", "global", "global memory"),
    "st.shared.u8": ("", "shared", "shared memory"),
    "atom.shared.add.u32": ("shared", "shared", "shared memory"),
    "red.release.gpu.global.add.f32": ("global", "global", "global memory"),
    "cp.async.ca.shared.global": ("global", "shared", "cp.async"),
    "cp.async.cg.shared.global.L2::128B": ("global", "shared", "cp.async"),
    "cp.async.commit_group": ("", "", "cp.async control"),
    "cp.async.wait_group": ("", "shared", "cp.async control"),
    "cp.async.wait_all": ("", "shared", "cp.async control"),
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16": ("shared", "", "ldmatrix"),
    "stmatrix.sync.aligned.m8n8.x4.shared.b16": ("", "shared", "stmatrix"),
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": ("", "", "mma"),
    "movmatrix.sync.aligned.m8n8.trans.b16": ("", "", "integer"),
    "wmma.load.b.sync.aligned.col.m16n16k16.shared.f16": (
        "shared",
        "",
        "shared memory",
    ),
    "wmma.store.d.sync.aligned.row.m8n8k4.global.f64": ("", "global", "global memory"),
    "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32": ("", "", "mma"),
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64": ("", "", "mma"),
    "bar.sync": ("", "", "barrier"),
    "barrier.cluster.arrive": ("", "", "barrier"),
    "ld.shared::cluster.u32": ("shared", "", "shared memory"),
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32": (
        "",
        "shared",
        "bulk copy",
    ),
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32": (
        "shared",
        "shared",
        "bulk copy",
    ),
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes": (
        "shared",
        "shared",
        "bulk copy",
    ),
    "cp.async.bulk.tensor.3d.shared::cluster.global.im2col": (
        "shared global",
        "shared global",
        "bulk copy",
    ),
    "tensormap.replace.tile.rank.shared::cta.b1024.b32": (
        "shared global",
        "shared global",
        "bulk copy",
    ),
    "tensormap.cp_fenceproxy.global.shared::cta": ("shared", "global", "bulk copy"),
    "fence.proxy.tensormap::generic.release.gpu": ("", "", "barrier"),
    "bar.warp.sync": ("", "", "barrier"),
    "fence.acq_rel.gpu": ("", "", "barrier"),
    "bra.uni": ("", "", "branch"),
    "shfl.sync.bfly.b32": ("", "", "warp"),
    "selp.f32": ("", "", "move"),
    "prmt.b32": ("", "", "move"),
    "setp.lt.f32": ("", "", "float"),
    "setp.lt.u32": ("", "", "integer"),
    "fma.rn.bf16x2": ("", "", "float"),
}
# What lanes do at an opcode: how it ends a span, which lanes meet, does it order them.
SYNCHRONISES = {
    "bra": ("branch", "", False),
    "brx.idx.uni": ("table", "", False),
    "ret.uni": ("return", "", False),
    "exit": ("exit", "", False),
    "call.uni": ("call", "", False),
    "trap": ("trap", "", False),
    "bar.sync": ("barrier", "", False),
    "bar.cta.arrive": ("barrier", "", False),
    "barrier.sync.aligned": ("barrier", "", False),
    "barrier.cta.red.popc.u32": ("barrier", "", False),
    "barrier.cluster.arrive": ("", "", False),
    "barrier.cluster.arrive.relaxed.aligned": ("", "live", False),
    "barrier.cluster.wait.acquire.aligned": ("cluster", "", False),
    "bar.warp.sync": ("", "members", False),
    "cp.async.wait_group": ("", "", False),
    "membar.gl": ("", "", False),
    "activemask.b32": ("", "", False),
    "shfl.sync.idx.b32": ("", "members", False),
    "vote.sync.ballot.b32": ("", "members", False),
    "match.any.sync.b32": ("", "members", False),
    "match.all.sync.b64": ("", "members", False),
    "redux.sync.add.u32": ("", "members", False),
    "elect.sync": ("", "members", False),
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": ("", "warp", True),
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16": ("", "warp", True),
    "stmatrix.sync.aligned.m8n8.x1.shared.b16": ("", "warp", False),
    "tensormap.cp_fenceproxy.global.shared::cta": ("", "warp", True),
    "movmatrix.sync.aligned.m8n8.trans.b16": ("", "warp", True),
    "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32": ("", "warp", True),
    "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16": ("", "warp", True),
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16": ("", "warp", True),
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32": ("", "warp", True),
    "wmma.store.d.sync.aligned.row.m16n16k16.global.f32": ("", "warp", False),
}


def row_of(opcode: str) -> Opcode:
    parsed = emulator.parse_ptx(
        f".version 8.0\n.target sm_80\n.visible .entry k() {{\n{opcode} 0;\n}}\n"
    )
    return table.opcode_of(parsed.kernels["k"].instructions[0])


# Complete, and the only one -----------------------------------------------------------


def handlers() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions of the families that translate an instruction."""
    for family in FAMILIES:
        for name, found in vars(family).items():
            if name.startswith("_") or not inspect.isfunction(found):
                continue
            parameters = inspect.signature(found).parameters
            is_own = found.__module__ == family.__name__
            is_handler = found.__annotations__.get("return") == "Op"
            if is_own and is_handler and [*parameters] == ["t", "ins"]:
                yield f"{family.__name__}.{name}", found


def test_every_handler_has_a_row_and_every_row_a_handler() -> None:
    used = {row.translate for row in table.OPCODES if not row.ends}
    known = dict(handlers())
    assert len(known) > 30
    assert [name for name, found in known.items() if found not in used] == []
    assert unsupported_form not in used


def test_what_ends_a_span_has_no_handler() -> None:
    ends = [row for row in table.OPCODES if row.ends]
    assert ends
    assert all(row.translate is unsupported_form for row in ends)


def test_no_two_rows_fit_the_same_form() -> None:
    rows = Counter((row.name, row.types, row.space) for row in table.OPCODES)
    assert [key for key, count in rows.items() if count > 1] == []
    forms: dict[str, set[bool]] = {}
    for row in table.OPCODES:
        forms.setdefault(row.name, set()).add(not row.types and row.space is None)
    assert all(len(kinds) == 1 for kinds in forms.values())


def test_every_row_says_where_the_ptx_isa_has_it() -> None:
    found = {row.name: row.section for row in table.OPCODES}
    for chapter, names in CHAPTERS.items():
        for name in names.split():
            if name != "fma":
                title = f"PTX ISA, {chapter} Instructions: {name}"
                assert found[name] == title
    titles = {f"PTX ISA, {chapter} Instructions" for chapter in CHAPTERS}
    assert {section.split(":")[0] for section in found.values()} == titles


def opcode_tests(source: str) -> list[int]:
    """The lines that compare an opcode or its parts with something."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and part.attr in ("parts", "opcode")
    ]


def test_nothing_else_compares_opcodes() -> None:
    allowed = {Path(str(family.__file__)) for family in (*FAMILIES, table)}
    allowed.add(PACKAGE / "ptx/program.py")  # finds calls, before there are rows
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path not in allowed
        for line in opcode_tests(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        'ins.parts[0] == "mma"',
        '"aligned" in ins.parts',
        "code[i].parts[:2] in NAMES",
        'ins.opcode != "bar.sync"',
    ],
)
def test_a_comparison_is_found(line: str) -> None:
    assert opcode_tests(f"if {line}:\n    pass") == [1]


# What the rows say --------------------------------------------------------------------


@pytest.mark.parametrize("opcode", ACCESSES)
def test_accesses_and_class(opcode: str) -> None:
    row = row_of(opcode)
    reads, writes, counted_as = ACCESSES[opcode]
    assert row.reads == set(reads.split())
    assert row.writes == set(writes.split())
    assert row.counted_as == counted_as


@pytest.mark.parametrize("opcode", SYNCHRONISES)
def test_ends_meetings_and_order(opcode: str) -> None:
    row = row_of(opcode)
    assert (row.ends, row.meets, row.orders) == SYNCHRONISES[opcode]


@pytest.mark.parametrize(
    "opcode",
    [
        "sin.approx.u32",
        "and.f32",
        "shfl.up.b32",
        "vote.ballot.b32",
        "cp.reduce.async",
        "ldmatrix.aligned.m8n8.x1.shared.b16",
        "bar.warp.arrive",
        "brx.uni",
    ],
)
def test_an_unsupported_form_is_an_error_before_the_run(opcode: str) -> None:
    out = np.zeros(1, np.uint32)
    body = f"""
    .reg .b64 %p; ld.param.u64 %p, [p0]; st.global.u32 [%p], 7;
    bra END;
    {opcode} 0;
    END: ret;
    """
    with pytest.raises(EmulationError, match=f"line 11: .*not supp.*: {opcode} 0( |$)"):
        run_kernel(body, ["u64"], [out], block=(1,))
    assert out[0] == 0


# Each column matters: with a wrong row a run shows something else ---------------------

START = """
    .shared .align 16 .b8 cells[1024];
    .reg .b32 %i, %at, %other, %v, %x; .reg .b64 %out; .reg .pred %p;
    ld.param.u64 %out, [p0];
    mov.u32 %i, %tid.x;
    mad.lo.u32 %at, %i, 4, cells;
    xor.b32 %other, %at, 4;
    mad.wide.u32 %out, %i, 4, %out;
"""
MOVE = "movmatrix.sync.aligned.m8n8.trans.b16 %x, %i;\n"
EPILOGUE = "\nst.global.u32 [%out], %v;\nret;"
EXCHANGE = f"st.shared.u32 [%at], %i;\n{MOVE}ld.shared.u32 %v, [%other];"
OVERWRITE = (
    "st.shared.u32 [%at], %i;\nbar.warp.sync -1;\n"
    f"ld.shared.u32 %v, [%other];\n{MOVE}st.shared.u32 [%at], %v;"
)
# Lanes 0 to 15 reach TOP first, as its instructions have lower numbers.
MEETING = """
    bra SPLIT;
TOP:
    {}
    bra END;
SPLIT:
    mov.u32 %v, 0;
    setp.lt.u32 %p, %i, 16;
    @%p bra TOP;
    mov.u32 %v, %i;
    bra TOP;
END:
"""
BYTES = """
    and.b32 %x, %i, 31; shl.b32 %x, %x, 1;
    shr.u32 %at, %i, 5; add.u32 %at, %at, %x; add.u32 %at, %at, cells;
    st.shared.u8 [%at], %i;
    mov.u32 %v, 0;
"""
MULTIPLY = (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
    "{%x, %x, %x, %x}, {%i, %i}, {%i}, {%x, %x, %x, %x};\nmov.u32 %v, 1;"
)
translate_and = next(row.translate for row in table.OPCODES if row.name == "and")
# column -> name of a row, what is wrong in it, and a kernel that shows it
WRONG_ROWS: dict[str, tuple[str, dict[str, Any], str]] = {
    "translate": ("xor", {"translate": translate_and}, "xor.b32 %v, %i, 5;"),
    "types": ("popc", {"types": "float"}, "popc.b32 %v, %i;"),
    "of": (
        "mma.sync.aligned.m16n8k32",
        {"of": ("s8",)},
        "mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32 "
        "{%x, %x, %x, %x}, {%i, %i}, {%i}, {%x, %x, %x, %x};\nmov.u32 %v, 1;",
    ),
    "space": ("st", {"space": "local"}, "st.shared.u32 [%at], %i;\nmov.u32 %v, 1;"),
    "reads": ("ld", {"reads": frozenset()}, EXCHANGE),
    "writes": ("st", {"writes": frozenset()}, OVERWRITE),
    "size": ("st", {"size": None}, BYTES),
    "ends": ("trap", {"ends": "exit"}, "trap;"),
    "meets": (
        "shfl.sync",
        {"meets": ""},
        MEETING.format("shfl.sync.bfly.b32 %v, %v, 16, 31, -1;"),
    ),
    "meets, aligned": (
        "mma.sync.aligned",
        {"meets": "members"},
        MEETING.format(MULTIPLY),
    ),
    "selects": (
        "selp",
        {"selects": False},
        "ld.shared.u32 %x, [cells];\nsetp.lt.u32 %p, %i, 64;\nselp.u32 %v, %i, %x, %p;",
    ),
    "orders": ("movmatrix.sync.aligned", {"orders": False}, EXCHANGE),
    "target": ("shl", {"target": "sm_90a"}, "shl.b32 %v, %i, 1;"),
    "since": ("shl", {"since": 90}, "shl.b32 %v, %i, 1;"),
    "counted_as": ("selp", {"counted_as": "integer"}, "selp.u32 %v, %i, 0, %p;"),
    "counted_as, mma": ("mma.sync.aligned", {"counted_as": "integer"}, MULTIPLY),
}


def outcome(body: str) -> tuple[Any, ...]:
    """All that a run of two warps shows."""
    out = np.zeros(64, np.uint32)
    try:
        result = run_kernel(
            START + body + EPILOGUE, ["u64"], [out], block=(64,), counters=True
        )
    except EmulationError as e:
        return (str(e),)
    return out.tolist(), result.hazards, result.notes, result.counters


@pytest.mark.parametrize("column", WRONG_ROWS)
def test_a_wrong_row_shows(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, change, body = WRONG_ROWS[column]
    right = outcome(body)
    wrong = [
        replace(row, **change) if row.name == name else row for row in table.OPCODES
    ]
    monkeypatch.setattr(table, "_ROWS", table._by_name(wrong))
    assert outcome(body) != right


def test_every_column_has_a_wrong_row() -> None:
    columns = {key.split(",")[0] for key in WRONG_ROWS}
    assert columns | {"name", "section"} == set(Opcode.__dataclass_fields__)
