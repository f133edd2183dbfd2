"""The structural check: right pipelines pass, each seeded bug is found and named."""

from __future__ import annotations

from typing import Any

import pytest

from alcop_mlir.bindings import arith, ir
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.verifier.check import check

SHAPES = [
    (stages, tail, bounds)
    for stages in ("2,1", "3,1", "3,2", "2,3", "4,3", "6,1")
    for tail in ("predicated", "wrap")
    for bounds in ("static", "run-time")
]
UPPER = {"static": "%c12", "run-time": "%n"}
WAIT, BARRIER = "nvgpu.device_async_wait", "gpu.barrier"
# The short form is read together with the first name of the next line.
GROUP = '"nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token'
VIEW, COPY = "memref.subview", "nvgpu.device_async_copy"


def kernel(bounds: str) -> str:
    """Two buffers; one is read in an inner loop, which can be a register pipeline."""
    shared = "memref<32xf32, #gpu.address_space<workgroup>>"
    return f"""
      gpu.module @kernels {{
        gpu.func @kernel(%A: memref<64x32xf32>, %B: memref<64x32xf32>, %n: index)
            workgroup(%a : {shared}, %b : {shared}) kernel
            attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c4 = arith.constant 4 : index
          %c12 = arith.constant 12 : index
          %zero = arith.constant 0.0 : f32
          %t = gpu.thread_id x
          %sum = scf.for %k = %c0 to {UPPER[bounds]} step %c1
              iter_args(%acc = %zero) -> (f32) {{
            %x = memref.load %A[%k, %t] : memref<64x32xf32>
            memref.store %x, %a[%t] : {shared}
            %y = memref.load %B[%k, %t] : memref<64x32xf32>
            memref.store %y, %b[%t] : {shared}
            gpu.barrier
            %in = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %acc) -> (f32) {{
              %at = arith.xori %t, %i : index
              %p = memref.load %a[%at] : {shared}
              %q = memref.load %b[%at] : {shared}
              %m = arith.mulf %p, %q : f32
              %r = arith.addf %s, %m : f32
              scf.yield %r : f32
            }}
            gpu.barrier
            scf.yield %in : f32
          }}
          memref.store %sum, %A[%c0, %t] : memref<64x32xf32>
          gpu.return
        }}
      }}"""


pytestmark = pytest.mark.usefixtures("context")


def expanded(stages: str, tail: str, bounds: str) -> Any:
    """The kernel with its loop expanded; alcop's primitives still stand."""
    return expanded_text(kernel(bounds), stages, tail)


def expanded_text(text: str, stages: str, tail: str = "predicated") -> Any:
    module = ir.Module.parse(text)
    plan = f"alcop-plan-pipelines{{stages={stages} tail={tail}}}"
    passes = f"{plan},alcop-multi-buffer,alcop-expand-pipelines"
    run_pipeline(module, f"builtin.module({passes})")
    assert ops(module, "alcop.consumer_wait"), "the kernel was not pipelined"
    return module


def placed(stages: str, tail: str, bounds: str) -> Any:
    """The same with waits and barriers placed."""
    return placed_text(kernel(bounds), stages, tail)


def placed_text(text: str, stages: str, tail: str = "predicated") -> Any:
    module = expanded_text(text, stages, tail)
    run_pipeline(module, "builtin.module(canonicalize,cse,alcop-place-waits)")
    return module


def ops(module: Any, name: str) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == name:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def messages(module: Any) -> list[str]:
    return [violation.message for violation in check(module.operation)]


def count(wait: Any) -> int:
    return wait.attributes["numGroups"].value


def set_count(wait: Any, number: int) -> None:
    i32 = ir.IntegerType.get_signless(32)
    wait.attributes["numGroups"] = ir.IntegerAttr.get(i32, number)


def set_slot(view: Any, slot: int) -> None:
    with view.location, ir.InsertionPoint(view):
        view.operands[1] = arith.constant(ir.IndexType.get(), slot)


@pytest.mark.parametrize(("younger", "wrong"), [(22, False), (23, True)])
def test_groups_of_long_loops_are_counted(younger: int, wrong: bool) -> None:
    """Iterations alike are not all run; here are two groups in each of eleven."""
    shared = "memref<32xf32, #gpu.address_space<workgroup>>"
    module = ir.Module.parse(f"""
      gpu.module @kernels {{
        gpu.func @kernel(%A: memref<64x32xf32>, %C: memref<32xf32>)
            workgroup(%a : {shared}) kernel
            attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c11 = arith.constant 11 : index
          %t = gpu.thread_id x
          %copy = nvgpu.device_async_copy %A[%c0, %t], %a[%t], 1
              : memref<64x32xf32> to {shared}
          %first = {GROUP}
          scf.for %k = %c0 to %c11 step %c1 {{
            %one = {GROUP}
            %two = {GROUP}
            nvgpu.device_async_wait %one {{numGroups = 1 : i32}}
          }}
          nvgpu.device_async_wait %first {{numGroups = {younger} : i32}}
          gpu.barrier
          %x = memref.load %a[%t] : {shared}
          memref.store %x, %C[%t] : memref<32xf32>
          gpu.return
        }}
      }}""")
    expected = "lets 23 groups fly, but only 22 are younger than the one waited for"
    assert messages(module) == ([expected] if wrong else [])


def test_loops_over_a_part_of_a_size_run_too() -> None:
    """Sizes are tried that make a few iterations of `n / 8`, or of `n >> 3`."""
    for part in ("arith.divui %size, %c8", "arith.shrui %size, %c3"):
        text = kernel("run-time").replace(", %n: index", ", %size: index")
        constants = "%c3 = arith.constant 3 : index %c8 = arith.constant 8 : index"
        text = text.replace("%t =", f"{constants} %n = {part} : index\n %t =")
        module = placed_text(text, "3,1")
        assert messages(module) == []
        set_count(ops(module, WAIT)[0], 2)
        assert messages(module), part


@pytest.mark.parametrize(("stages", "tail", "bounds"), SHAPES)
def test_right_pipelines_pass(stages: str, tail: str, bounds: str) -> None:
    assert messages(expanded(stages, tail, bounds)) == []
    module = placed(stages, tail, bounds)
    assert messages(module) == []
    after = "alcop-unroll-steady-state,canonicalize,cse,fold-memref-alias-ops"
    for step in after.split(","):
        run_pipeline(module, f"builtin.module({step})")
        assert messages(module) == [], step


LAUNCH = """
  func.func @kernel(%A: memref<64x32xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %half = arith.divui %n, %c32 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
      %a = memref.alloc() : memref<32xf32, #gpu.address_space<workgroup>>
      scf.for %again = %c0 to %half step %c1 {
        scf.for %k = %c0 to %n step %c1 {
          %x = memref.load %A[%k, %tx] : memref<64x32xf32>
          memref.store %x, %a[%tx] : memref<32xf32, #gpu.address_space<workgroup>>
          gpu.barrier
          %y = memref.load %a[%tx] : memref<32xf32, #gpu.address_space<workgroup>>
          memref.store %y, %A[%c0, %tx] : memref<64x32xf32>
          gpu.barrier
        }
      }
      gpu.terminator
    }
    return
  }"""


def test_numbers_from_outside_of_the_kernel() -> None:
    """Constants and bounds of a launch are outside of it; its loops run anyway."""
    text = LAUNCH.replace("memref.store %y, %A", "memref.store %y, %B").replace(
        "%n: index", "%B: memref<64x32xf32>, %n: index"
    )
    passes = (
        "alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,"
        "alcop-expand-pipelines,canonicalize,cse,alcop-place-waits"
    )

    def placed_launch() -> Any:
        module = ir.Module.parse(text)
        run_pipeline(module, f"builtin.module({passes})")
        return module

    assert messages(placed_launch()) == []
    for number in range(len(ops(placed_launch(), WAIT))):
        module = placed_launch()
        ops(module, WAIT)[number].erase()
        assert any("in flight" in found for found in messages(module)), number


def test_a_kernel_without_pipelines_passes() -> None:
    assert messages(ir.Module.parse(kernel("static"))) == []


@pytest.mark.parametrize(("stages", "tail", "bounds"), SHAPES)
def test_each_wait_is_needed(stages: str, tail: str, bounds: str) -> None:
    for number in range(len(ops(placed(stages, tail, bounds), WAIT))):
        module = placed(stages, tail, bounds)
        ops(module, WAIT)[number].erase()
        found = messages(module)
        assert any("in flight" in message for message in found), number


@pytest.mark.parametrize(("stages", "tail", "bounds"), SHAPES)
def test_no_wait_lets_more_groups_fly(stages: str, tail: str, bounds: str) -> None:
    for number in range(len(ops(placed(stages, tail, bounds), WAIT))):
        module = placed(stages, tail, bounds)
        wait = ops(module, WAIT)[number]
        most = count(wait)
        set_count(wait, most + 1)
        assert (
            f"lets {most + 1} groups fly, but only {most} are younger than the one "
            "waited for"
        ) in messages(module), number


@pytest.mark.parametrize(("stages", "tail", "bounds"), SHAPES)
def test_each_barrier_is_needed(stages: str, tail: str, bounds: str) -> None:
    barriers = len(ops(placed(stages, tail, bounds), BARRIER))
    # That of the last wait of a pipeline that wraps around: nobody reads afterwards.
    needed = barriers - (tail == "wrap")
    for number in range(needed):
        module = placed(stages, tail, bounds)
        ops(module, BARRIER)[number].erase()
        found = messages(module)
        assert any("with no barrier since" in message for message in found), number


@pytest.mark.parametrize(("stages", "tail", "bounds"), SHAPES)
def test_a_slot_beyond_the_last(stages: str, tail: str, bounds: str) -> None:
    module = placed(stages, tail, bounds)
    slots = int(stages[0])
    dynamic = [view for view in ops(module, VIEW) if len(view.operands) > 1]
    assert dynamic
    set_slot(dynamic[0], slots)
    kind = f"memref<{slots}x32xf32, #gpu.address_space<workgroup>>"
    assert f"slot {slots} of '{kind}' does not exist" in messages(module)


@pytest.mark.parametrize(("stages", "tail", "bounds"), SHAPES)
def test_the_wrong_slot(stages: str, tail: str, bounds: str) -> None:
    """In the first loop, which comes round to every slot, all go to slot 0."""
    for kind, readers in (("copy", False), ("read", True)):
        module = placed(stages, tail, bounds)
        loop = ops(module, "scf.for")[0]
        views = [
            view
            for view in ops(module, VIEW)
            if view.parent.operation == loop and _is_read(view) == readers
        ]
        assert views, kind
        set_slot(views[0], 0)
        found = messages(module)
        assert any(message.startswith("slot ") for message in found), kind


def _is_read(view: Any) -> bool:
    users = [use.owner.operation.name for use in view.results[0].uses]
    return COPY not in users


@pytest.mark.parametrize("stages", ["2,1", "3,1", "4,3"])
def test_each_consumer_wait_is_needed(stages: str) -> None:
    shape = (stages, "predicated", "run-time")
    for number in range(len(ops(expanded(*shape), "alcop.consumer_wait"))):
        module = expanded(*shape)
        ops(module, "alcop.consumer_wait")[number].erase()
        assert any("in flight" in found for found in messages(module)), number


def test_a_copy_that_nobody_waits_for() -> None:
    module = placed("2,1", "wrap", "static")
    ops(module, WAIT)[-1].erase()
    (found,) = {message for message in messages(module) if "ends" in message}
    assert found == (
        "a copy into slot 0 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is in "
        "flight when the kernel ends"
    )


def test_a_negative_count() -> None:
    module = placed("3,1", "predicated", "static")
    set_count(ops(module, WAIT)[0], -1)
    assert "lets -1 groups fly, expected 0 or more" in messages(module)


def kernel_with(body: str) -> Any:
    """A kernel of one copy into `%a[%slot]`, and what else `body` does."""
    shared = "memref<2x64xf32, #gpu.address_space<workgroup>>"
    copy = f"""nvgpu.device_async_copy %A[%k, %t], %a[%slot, %t], 1
        : memref<64x64xf32> to {shared}"""
    commit = '"nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token'
    body = body.replace("COPY", f"%copy = {copy}").replace("COMMIT", commit)
    return ir.Module.parse(f"""
      gpu.module @kernels {{
        gpu.func @kernel(%A: memref<64x64xf32>, %n: index) workgroup(%a : {shared})
            kernel {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index
          %c8 = arith.constant 8 : index
          %zero = arith.constant 0.0 : f32
          %t = gpu.thread_id x
          %few = arith.cmpi ult, %t, %c8 : index
          scf.for %k = %c0 to %c8 step %c1 {{
            %slot = arith.remui %k, %c2 : index
            {
        body.replace("READ", f"%x = memref.load %a[%slot, %c1] : {shared}").replace(
            "STORE", f"memref.store %zero, %a[%slot, %t] : {shared}"
        )
    }
            gpu.barrier
          }}
          gpu.return
        }}
      }}""")


WAIT_0 = "nvgpu.device_async_wait %g {numGroups = 0 : i32}"


@pytest.mark.parametrize(
    "body",
    [
        # Some threads copy, commit and wait; others store.
        f"scf.if %few {{ COPY\n %g = COMMIT\n {WAIT_0} }} else {{ STORE }}\n"
        "gpu.barrier\n READ",
        # Some threads commit a group of their own, and all wait for all.
        f"scf.if %few {{ COPY\n %own = COMMIT\n }}\n %g = COMMIT\n {WAIT_0}\n"
        "gpu.barrier\n READ",
        # A copy under a condition, in a group of all threads.
        f"scf.if %few {{ COPY }}\n %g = COMMIT\n {WAIT_0}\n gpu.barrier\n READ",
        # A slot that is stored where no wait is for it.
        f"%odd = arith.cmpi eq, %slot, %c1 : index\n scf.if %odd {{ STORE }} else {{\n"
        f"COPY\n %g = COMMIT\n {WAIT_0} }}\n gpu.barrier\n READ",
        # One condition in the other, and both at once: alike, also if one is not known.
        "%odd = arith.cmpi eq, %slot, %c1 : index\n"
        "%both = arith.andi %odd, %few : i1\n"
        f"scf.if %odd {{ scf.if %few {{ COPY }} }}\n %g = COMMIT\n {WAIT_0}\n"
        "gpu.barrier\n scf.if %both { READ }",
        # More groups than are remembered, after the one that is waited for.
        f"COPY\n %g = COMMIT\n %c80 = arith.constant 80 : index\n"
        f"scf.for %i = %c0 to %c80 step %c1 {{ %o = COMMIT\n }}\n"
        f"{WAIT_0}\n gpu.barrier\n READ",
    ],
)
def test_what_some_threads_do(body: str) -> None:
    """Commits, waits and copies under a condition, and slots that are stored."""
    assert messages(kernel_with(body)) == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            f"%g = COMMIT\n scf.if %few {{ COPY\n %own = COMMIT\n }}\n {WAIT_0}\n"
            "gpu.barrier\n READ",
            "",
        ),
        (
            "scf.if %few { COPY\n %g = COMMIT\n }\n gpu.barrier\n READ",
            "no wait covers its group",
        ),
        (
            f"COPY\n %g = COMMIT\n scf.if %few {{ {WAIT_0} }}\n gpu.barrier\n READ",
            "no wait covers its group",
        ),
        (
            "scf.if %few { COPY\n %own = COMMIT\n } else { COPY\n }\n"
            "%g = COMMIT\n nvgpu.device_async_wait %g {numGroups = 1 : i32}\n"
            "gpu.barrier\n READ",
            "lets 1 groups fly, but only 0 are younger",
        ),
        (
            f"scf.if %few {{ gpu.barrier }}\n COPY\n %g = COMMIT\n {WAIT_0}\n READ",
            "no barrier since its copies landed",
        ),
    ],
)
def test_what_some_threads_do_wrong(body: str, why: str) -> None:
    found = messages(kernel_with(body))
    assert any(why in message for message in found) if why else not found
