"""What finds a wrong preparation pass, or a wrong alcop-make-async: one change each.

The output of each pass, on a small kernel, is changed in one place: a barrier or a wait
is gone, an access is to another element, slot or buffer, a condition always holds, two
branches are swapped, a loop begins, ends or steps otherwise. Each mutant is given to
the verifier, with what the program wrote before the pass. What it does not find is run
against that program, with all schedules, and copies that land early or late, and must
compute the same: `SAME`.

Of alcop-make-async the verifier must find each wait and barrier that is missing or too
weak without knowing the program before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reported_kernels as reported
from differential import (
    SCHEDULES,
    VISIBILITIES,
    Settings,
    context,
    emitted,
    find,
    launch,
    placed,
)

from alcop_mlir import diagnostics
from alcop_mlir.bindings import arith, ir
from alcop_mlir.errors import AlcopError
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.verifier.check import check
from alcop_mlir.verifier.effects import Effects, changed, effects
from alcop_mlir.verifier.plans import check_plans
from alcop_mlir.verifier.promises import check_promises

UNPIPELINED = Settings((1, 1), optimize=False, unroll=False)
ASYNCHRONOUS = Settings((1, 1), optimize=False, unroll=False, make_async=True)
MODES = [(seen, order) for seen in VISIBILITIES for order in SCHEDULES]
SIZES = (5, 0, 1)  # trip counts; what is wrong is mostly found with the first
ACCESSES = ("memref.load", "memref.store", "nvgpu.device_async_copy")

TWO = "memref<2x64xf32, #gpu.address_space<workgroup>>"
BYTES = "memref<512xi8, #gpu.address_space<workgroup>>"


# -- kernels ---------------------------------------------------------------------------


def with_slots() -> str:
    """Two slots, by the remainder of the index."""
    body = reported.loop("    %s = arith.remui %k, %c2 : index" + reported.COPY, READ)
    text = body.rpartition("    gpu.barrier\n")
    return reported.kernel(
        (text[0] + text[2]).replace("%a[", "%a[%s, ").replace("SHARED", TWO),
        f"%a : {TWO}",
    )


def in_turn() -> str:
    """Two loops that fill one buffer."""
    first = reported.loop(reported.COPY, READ)
    second = first.replace("%sum", "%sum2").replace("%acc = %zero", "%acc = %sum")
    return reported.kernel(first + second.replace("%C[%c0", "%C[%c1"), "%a : SHARED")


def over_integers() -> str:
    """A loop from -3, in i32."""
    bounds = """
  %n32 = arith.index_cast %n : index to i32
  %lower = arith.constant -3 : i32
  %one = arith.constant 1 : i32
  %upper = arith.addi %n32, %lower : i32"""
    body = reported.loop(
        "    %i = arith.subi %number, %lower : i32\n"
        f"    %k = arith.index_cast %i : i32 to index{reported.COPY}",
        READ,
    )
    body = body.replace(
        "scf.for %k = %c0 to %n step %c1",
        "scf.for %number = %lower to %upper step %one",
    )
    return reported.kernel(bounds + body.replace("-> (f32) {", "-> (f32) : i32 {"))


def with_views() -> str:
    """Two typed views of one allocation of bytes."""
    views = "".join(
        f"""
  %{name} = memref.view %bytes[%{at}][] : {BYTES} to SHARED"""
        for name, at in (("a", "c0"), ("b", "c256"))
    )
    second = (
        reported.COPY.replace("%v", "%w").replace("%a", "%b").replace("%k,", "%c4,")
    )
    reads = """
    %x = memref.load %a[%other] : SHARED
    %y = memref.load %b[%other] : SHARED
    %z = arith.subf %x, %y : f32
    %next = arith.addf %acc, %z : f32"""
    constant = "\n  %c256 = arith.constant 256 : index"
    body = constant + views + reported.loop(reported.COPY + second, reads)
    return reported.kernel(body, f"%bytes : {BYTES}")


def guarded() -> str:
    """Two iterations of three copy, wait and read; the others add nothing."""
    body = f"""
    %c3 = arith.constant 3 : index
    %which = arith.remui %k, %c3 : index
    %go = arith.cmpi ne, %which, %c1 : index
    %new = scf.if %go -> (f32) {{{reported.COPY}
      gpu.barrier{READ}
      gpu.barrier
      scf.yield %next : f32
    }} else {{
      scf.yield %acc : f32
    }}"""
    text = reported.loop("BODY", "").replace("yield %next", "yield %new")
    before, _, after = text.partition("BODY")
    return reported.kernel(before + body + after.replace("    gpu.barrier\n", ""))


def without_a_pipeline() -> str:
    """A tile that is filled before the loop, and one after it."""
    fill = reported.COPY.replace("%k,", "%c4,")
    again = fill.replace("%v", "%w").replace("%a", "%b").replace("%c4,", "%c2,")
    use = """
    %at = arith.addi %other, %k : index
    %in = arith.remui %at, %c64 : index
    %x = memref.load %a[%in] : SHARED
    %next = arith.addf %acc, %x : f32"""
    total = """
  gpu.barrier
  %y = memref.load %b[%other] : SHARED
  %total = arith.subf %sum, %y : f32
"""
    rest = reported.loop("", use, result="%total").replace("    gpu.barrier\n", "")
    before, store, last = rest.rpartition("  memref.store")
    constant = "\n  %c64 = arith.constant 64 : index"
    body = constant + fill + "\n  gpu.barrier" + before + again + total + store + last
    return reported.kernel(body)


READ = reported.READ
KERNELS: dict[str, Callable[[], str]] = {
    "alcop-fold-slots": with_slots,
    "alcop-separate-buffers": in_turn,
    "alcop-normalize-loops": over_integers,
    "alcop-separate-views": with_views,
    "alcop-split-guards": guarded,
    "alcop-make-async": without_a_pipeline,
}

# -- mutations -------------------------------------------------------------------------


def shared_accesses(module: Any) -> Iterator[tuple[Any, int]]:
    """Ops that access shared memory, and the number of the operand that says where."""
    for op in find(module, *ACCESSES):
        for number, operand in enumerate(op.operands):
            if "workgroup" in str(operand.type):
                yield op, number


def erased(name: str) -> Callable[[Any], list[Callable[[], None]]]:
    return lambda module: [op.erase for op in find(module, name)]


def later_waits(module: Any) -> list[Callable[[], None]]:
    """Each wait lets one group more fly."""

    def change(op: Any) -> None:
        count = op.attributes["numGroups"].value + 1
        i32 = ir.IntegerType.get_signless(32)
        op.attributes["numGroups"] = ir.IntegerAttr.get(i32, count)

    return [lambda op=op: change(op) for op in find(module, "nvgpu.device_async_wait")]


def empty_groups(module: Any) -> list[Callable[[], None]]:
    """Each group begins where its copies do, and holds none of them."""
    groups = find(module, "nvgpu.device_async_create_group")
    copies = find(module, "nvgpu.device_async_copy")
    return [
        lambda op=op, first=first: op.move_before(first)
        for op, first in zip(groups, copies, strict=True)
    ]


def other_elements(module: Any) -> list[Callable[[], None]]:
    """The last index of each access to shared memory has its lowest bit changed."""
    last = [
        (op, number + op.operands[number].type.rank)
        for op, number in shared_accesses(module)
    ]
    return [lambda op=op, at=at: add(op, at, 1, arith.xori) for op, at in last]


def other_slots(module: Any) -> list[Callable[[], None]]:
    """Each access to the one slot that is left is to another."""
    return [
        lambda op=op, at=number + 1: add(op, at, 1)
        for op, number in shared_accesses(module)
        if op.operands[number].type.rank > 1
    ]


def other_buffers(module: Any) -> list[Callable[[], None]]:
    """Each access to shared memory is to the other buffer of its type."""
    found = list(shared_accesses(module))
    buffers = list(dict.fromkeys(op.operands[number] for op, number in found))

    def change(op: Any, number: int) -> None:
        (op.operands[number],) = [b for b in buffers if b != op.operands[number]]

    return [
        lambda op=op, number=number: change(op, number)
        for op, number in found
        if len(buffers) > 1
    ]


def always(module: Any) -> list[Callable[[], None]]:
    """Each condition holds always."""

    def change(op: Any) -> None:
        with op.location, ir.InsertionPoint(op):
            i1 = ir.IntegerType.get_signless(1)
            op.operands[0] = arith.ConstantOp(i1, ir.IntegerAttr.get(i1, 1)).result

    return [lambda op=op: change(op) for op in find(module, "scf.if")]


def swapped(module: Any) -> list[Callable[[], None]]:
    """Each branch is taken where the other was."""

    def change(op: Any) -> None:
        with op.location, ir.InsertionPoint(op):
            i1 = ir.IntegerType.get_signless(1)
            one = arith.ConstantOp(i1, ir.IntegerAttr.get(i1, 1)).result
            op.operands[0] = arith.xori(op.operands[0], one)

    return [lambda op=op: change(op) for op in find(module, "scf.if")]


def bounds(number: int) -> Callable[[Any], list[Callable[[], None]]]:
    """That of each loop's lower bound, upper bound and step is one more."""
    return lambda module: [
        lambda op=op: add(op, number, 1) for op in find(module, "scf.for")
    ]


def other_indices(module: Any) -> list[Callable[[], None]]:
    """What a loop's index becomes for its body is one more."""
    casts = [
        op
        for op in find(module, "arith.index_cast")
        if str(op.operands[0].type) == "index" and op.parent.operation.name == "scf.for"
    ]
    return [lambda op=op: add(op, 0, 1) for op in casts]


def add(op: Any, number: int, amount: int, by: Callable[..., Any] = arith.addi) -> None:
    """Change an operand that is an index."""
    with op.location, ir.InsertionPoint(op):
        index = ir.IndexType.get()
        constant = arith.ConstantOp(index, ir.IntegerAttr.get(index, amount)).result
        op.operands[number] = by(op.operands[number], constant)


MUTATIONS: dict[str, Callable[[Any], list[Callable[[], None]]]] = {
    "no barrier": erased("gpu.barrier"),
    "no wait": erased("nvgpu.device_async_wait"),
    "later wait": later_waits,
    "empty group": empty_groups,
    "other element": other_elements,
    "other slot": other_slots,
    "other buffer": other_buffers,
    "always": always,
    "swapped": swapped,
    "lower bound": bounds(0),
    "upper bound": bounds(1),
    "step": bounds(2),
    "other index": other_indices,
}
# The verifier, of what is wrong in any program, or in this one; runs.
FINDERS = ("alone", "compared", "emulator", "neither")
# Mutants that compute the same, and why.
SAME = {
    ("alcop-split-guards", "always", 0): "the copy; what it fills is read only in "
    "iterations where its condition holds, each of which fills it anew",
}


def mutants(name: str, text: str) -> Iterator[tuple[str, int, Any]]:
    """Modules with one change, its kind, and its number among those of the kind."""
    for kind, changes in MUTATIONS.items():
        for number in range(len(changes(prepared(name, text)))):
            module = prepared(name, text)
            changes(module)[number]()
            yield kind, number, module


def prepared(name: str, text: str) -> Any:
    """The module after the pass of that name."""
    if name == "alcop-make-async":
        return placed(text, ASYNCHRONOUS)
    module = ir.Module.parse(text)
    run_pipeline(module, f"builtin.module({name},canonicalize,cse)")
    return module


def found_by(name: str, module: Any, before: Effects, expected: Sequence[bytes]) -> str:
    """What finds a mutant; "neither" if nothing does."""
    assert module.operation.verify()
    if any(one(module.operation) for one in (check, check_plans, check_promises)):
        return "alone"
    if any(changed(before, module.operation)):
        return "compared"
    try:
        is_right = all(
            bits == right
            for size, right in zip(SIZES, expected, strict=True)
            for bits in results(name, module, size)
        )
    except AlcopError:
        return "emulator"
    return "neither" if is_right else "emulator"


def results(name: str, module: Any, size: int) -> Iterator[bytes]:
    """The bits of each mode; b"" where there is a hazard."""
    copy = ir.Module.parse(str(module))
    if name != "alcop-make-async":
        copy = placed(str(module), UNPIPELINED)
    done = emitted(copy, UNPIPELINED)
    random = np.random.default_rng(0)
    a = random.uniform(-1, 1, (reported.ROWS, 64)).astype("f4")
    for mode in MODES:
        c = np.full((64, 64), 7, "f4")
        block = (reported.THREADS, 1, 1)
        hazards = launch(done, (1, 1, 1), block, [a, c, size], mode)
        yield b"" if hazards else c.tobytes()


def test_mutants_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen: Counter[tuple[str, str, str]] = Counter()
    missed: list[tuple[str, str, int]] = []
    with context(), ir.Location.unknown(), diagnostics.collect():
        for name, kernel in KERNELS.items():
            text = kernel()
            plain = ir.Module.parse(text)
            expected = [next(results("", plain, size)) for size in SIZES]
            assert b"" not in expected
            before = effects(plain.operation)
            assert found_by(name, prepared(name, text), before, expected) == "neither"
            for kind, number, module in mutants(name, text):
                by = found_by(name, module, before, expected)
                if by == "neither":
                    missed.append((name, kind, number))
                seen[name, kind, by] += 1
    print(f"{'pass':24}{'mutant':16}alone    compared emulator neither")
    for name, kind in dict.fromkeys((name, kind) for name, kind, _ in seen):
        counts = [seen[name, kind, by] for by in FINDERS]
        print(f"{name:24}{kind:16}" + "".join(f"{count:<9}" for count in counts))
    assert sorted(missed) == sorted(SAME)
    assert not any(by == "emulator" for _, _, by in seen)
    for kind in ("no wait", "later wait", "empty group", "no barrier"):
        assert not seen["alcop-make-async", kind, "compared"], kind
