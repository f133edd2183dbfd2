"""What a compiled host function launches, and what it may not hold."""

from __future__ import annotations

import pytest

from alcop_mlir.analysis.host.host_function import host, host_functions
from alcop_mlir.analysis.host.host_values import Names
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.manifest.arrays import Intermediate, Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import (
    CeilDiv,
    Kernel,
    PipelinedBuffer,
    Pointer,
    SizeValue,
    unguarded,
)
from alcop_mlir.polynomials import constant, size
from alcop_mlir.schedule import Schedule

KERNELS = """
gpu.module @f_kernels {
  llvm.func @f(%a: !llvm.ptr, %b: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}"""
ARRAYS = "%a: memref<8x4xf16>, %b: memref<8xf32>, %n: memref<2xf32>"
CONSTANTS = """
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %shared = arith.constant 4096 : i32"""
LAUNCH = """
  gpu.launch_func @f_kernels::@f blocks in (%c2, %c1, %c1) threads in (%c64, %c2, %c1)
    dynamic_shared_memory_size %shared
    args(%b : memref<8xf32>, %view : memref<1xf16>)"""
VIEW = """
  %view = memref.reinterpret_cast %a to offset: [0], sizes: [1], strides: [1]
    : memref<8x4xf16> to memref<1xf16>"""


def read(body: str, arguments: str = ARRAYS, names: Names | None = None) -> object:
    text = f"""module attributes {{gpu.container_module}} {{ {KERNELS}
      func.func @f({arguments}) {{ {CONSTANTS} {body} return }} }}"""
    with make_context():
        module = ir.Module.parse(text)
    (func,) = host_functions(module)
    return host(func, names)


def test_launches_are_data() -> None:
    """Sizes as numbers; arguments of the kernel by their names."""
    kernel = Kernel(
        "f",
        "f_kernels",
        (Pointer("arg1"), Pointer("arg0")),
        grid=(2, 1, 1),
        block=(64, 2, 1),
        shared_bytes=4096,
    )
    assert read(VIEW + LAUNCH) == Function(
        name="f",
        parameters=(
            Parameter("arg0", "f16", (8, 4)),
            Parameter("arg1", "f32", (8,)),
            Parameter("arg2", "f32", (2,)),
        ),
        launches=(unguarded(kernel),),
    )


def test_what_was_decided_is_on_the_launch() -> None:
    """The schedule, what is pipelined, and why it is a SIMT fallback."""
    schedule = """ {alcop.decisions = {schedule = {block = [64, 64, 32]},
      pipelines = [{buffer = "arg0 64x32xf16", level = "shared", stages = 3 : i64}]}}"""
    fallback = ' {alcop.decisions = {fallback = "is in f64", pipelines = []}}'
    found = read(VIEW + LAUNCH + schedule + LAUNCH + fallback)
    assert isinstance(found, Function)
    one, other = found.kernels
    assert one.schedule == Schedule(block=(64, 64, 32))
    assert one.pipelines == (PipelinedBuffer("arg0 64x32xf16", "shared", 3),)
    assert (one.fallback, other.fallback) == (None, "is in f64")
    assert (other.schedule, other.pipelines) == (None, ())


@pytest.mark.parametrize(
    "decisions",
    [
        "3 : i64",
        "{schedule = {tile = 3 : i64}}",
        "{pipelines = [{}]}",
        "{schedule = 3}",
    ],
)
def test_decisions_of_other_programs_stand_in_the_way(decisions: str) -> None:
    """Where they are not what alcop-outline-kernels writes."""
    found = read(VIEW + LAUNCH + f" {{alcop.decisions = {decisions}}}")
    assert isinstance(found, tuple)
    assert found[0].reason.startswith("'alcop.decisions' is ")


def test_a_launch_without_dynamic_memory_has_none() -> None:
    """And there may be several, in order."""
    without = LAUNCH.replace("dynamic_shared_memory_size %shared", "")
    found = read(VIEW + LAUNCH + without)
    assert isinstance(found, Function)
    assert [kernel.shared_bytes for kernel in found.kernels] == [4096, 0]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "memref.copy %b, %b : memref<8xf32> to memref<8xf32>",
            "'memref.copy' was not compiled to a kernel",
        ),
        (
            "%x = memref.alloca() : memref<8xf32>",
            "'memref.alloca' was not compiled to a kernel",
        ),
        (
            "%x = memref.alloc() : memref<8xf32, 3>",
            "allocates memref<8xf32, 3>, expected no layout or memory space",
        ),
        (
            "%x = memref.alloc() : memref<8xcomplex<f32>>",
            "allocates memref<8xcomplex<f32>>, expected elements that are numbers",
        ),
        (
            """%d = memref.dim %b, %c1 : memref<8xf32>
            %sum = arith.divui %d, %c64 : index
            %x = memref.alloc(%sum) : memref<?xf32>""",
            "allocates memref<?xf32>, expected sizes that arguments have, or "
            "that are computed from these by +, - and *",
        ),
    ],
)
def test_what_is_no_launch_stands_in_the_way(body: str, reason: str) -> None:
    """The first obstacle says which op it is."""
    found = read(body)
    assert isinstance(found, tuple)
    assert found[0].reason == reason


def test_sizes_known_at_run_time() -> None:
    """Blocks per size, sizes as arguments of a kernel, strides and promises."""
    arguments = (
        "%a: memref<?x4xf16> {alcop.row_alignment = 8 : i64}, "
        "%b: memref<8xf32> {alcop.alignment = 4 : i64}, "
        "%n: memref<4x4xf32, strided<[8, 1]>>"
    )
    body = """
      %c0 = arith.constant 0 : index
      %rows = memref.dim %a, %c0 : memref<?x4xf16>
      %blocks = arith.ceildivui %rows, %c64 : index
      %size = arith.index_cast %rows : index to i64
      %more = arith.muli %blocks, %c2 : index
      %most = arith.muli %more, %blocks : index
      gpu.launch_func @f_kernels::@f blocks in (%blocks, %rows, %most)
        threads in (%c64, %c1, %c1) args(%b : memref<8xf32>, %size : i64)"""
    found = read(body, arguments)
    assert isinstance(found, Function)
    assert found.parameters == (
        Parameter("arg0", "f16", ("arg0_0", 4), row_alignment=8),
        Parameter("arg1", "f32", (8,), alignment=4),
        Parameter("arg2", "f32", (4, 4), strides=(8, 1)),
    )
    rows = size("arg0_0")
    (kernel,) = found.kernels
    blocks = CeilDiv(rows, 64)
    assert kernel.grid == (blocks, CeilDiv(rows, 1), (blocks, 2, blocks))
    assert kernel.arguments == (Pointer("arg1"), SizeValue("arg0_0"))
    named = read(body, arguments, Names(("A", "B", "C"), {("A", 0): "M"}))
    assert isinstance(named, Function)
    assert named.kernels[0].arguments == (Pointer("B"), SizeValue("M"))
    known = read(body, arguments, Names(("A", "B", "C"), {("A", 0): 128}))
    assert isinstance(known, Function)
    assert known.kernels[0].grid == (2, 128, (2, 2, 2))
    assert known.kernels[0].arguments == (Pointer("B"), SizeValue(128))


def test_strides_known_at_run_time() -> None:
    """Where the type has none and sizes do not tell; arguments of a kernel."""
    arguments = (
        "%a: memref<?x4xf16, strided<[?, 1]>>, %b: memref<8xf32>, "
        "%n: memref<?x?xf32>, %o: memref<2x4x4xf32, strided<[?, 8, 2]>>"
    )
    body = """
      %base, %at, %rows, %columns, %pitch, %one = memref.extract_strided_metadata %a
        : memref<?x4xf16, strided<[?, 1]>>
        -> memref<f16>, index, index, index, index, index
      %given = arith.index_cast %pitch : index to i64
      gpu.launch_func @f_kernels::@f blocks in (%c2, %c2, %c1)
        threads in (%c64, %c1, %c1) args(%b : memref<8xf32>, %given : i64)"""
    found = read(body, arguments)
    assert isinstance(found, Function)
    strides = [parameter.strides for parameter in found.parameters]
    assert strides == [("arg0_stride_0", 1), None, None, ("arg3_stride_0", 8, 2)]
    taken = (Pointer("arg1"), SizeValue("arg0_stride_0"))
    assert found.kernels[0].arguments == taken
    # Not so the offset, nor a size: that is asked for by memref.dim.
    for other in ("%at", "%rows"):
        wrong = body.replace("index_cast %pitch", f"index_cast {other}")
        assert isinstance(read(wrong, arguments), tuple)


def test_buffers_that_are_handed_on() -> None:
    """Allocations are numbered, their sizes are those of arguments or constant."""
    body = """
      %c0 = arith.constant 0 : index
      %rows = memref.dim %a, %c0 : memref<?x4xf16>
      %x = memref.alloc(%rows) : memref<4x?xf32>
      %y = memref.alloc() : memref<8xi1>
      %again = memref.dim %x, %c1 : memref<4x?xf32>
      %four = memref.dim %x, %c0 : memref<4x?xf32>
      %both = arith.muli %again, %four : index
      %all = arith.muli %both, %c2 : index
      %blocks = arith.ceildivui %all, %c64 : index
      %size = arith.index_cast %again : index to i64
      %px = memref.reinterpret_cast %x to offset: [0], sizes: [1], strides: [1]
        : memref<4x?xf32> to memref<1xf32>
      gpu.launch_func @f_kernels::@f blocks in (%blocks, %c1, %c1)
        threads in (%c64, %c1, %c1)
        args(%px : memref<1xf32>, %y : memref<8xi1>, %size : i64)
      memref.dealloc %x : memref<4x?xf32>"""
    found = read(body, "%a: memref<?x4xf16>")
    assert isinstance(found, Function)
    assert found.intermediates == (
        Intermediate("tmp0", "f32", (4, "arg0_0")),
        Intermediate("tmp1", "i1", (8,)),
    )
    (kernel,) = found.kernels
    assert kernel.grid == (CeilDiv(constant(8) * size("arg0_0"), 64), 1, 1)
    taken = (Pointer("tmp0"), Pointer("tmp1"), SizeValue("arg0_0"))
    assert kernel.arguments == taken


def test_sizes_that_the_host_computes() -> None:
    """Of a buffer, of a kernel's argument, and of its grid."""
    found = read(
        """
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %d = memref.dim %a, %c0 : memref<?x4xf16>
      %less = affine.apply affine_map<(d)[s] -> (d * 2 - s)>(%d)[%c3]
      %x = memref.alloc(%less) : memref<?xf32>
      %size = arith.index_cast %less : index to i64
      %px = memref.reinterpret_cast %x to offset: [0], sizes: [1], strides: [1]
        : memref<?xf32> to memref<1xf32>
      gpu.launch_func @f_kernels::@f blocks in (%less, %c1, %c1)
        threads in (%c64, %c1, %c1) args(%px : memref<1xf32>, %size : i64)""",
        "%a: memref<?x4xf16>",
    )
    assert isinstance(found, Function)
    less = constant(2) * size("arg0_0") - constant(3)
    assert found.intermediates == (Intermediate("tmp0", "f32", (less,)),)
    (kernel,) = found.kernels
    assert kernel.arguments == (Pointer("tmp0"), SizeValue(less))
    assert kernel.grid == (CeilDiv(less, 1), 1, 1)


@pytest.mark.parametrize(
    ("order", "least", "most"),
    [
        ("sle, %more, %columns", "rows + 1", "columns"),
        ("sge, %columns, %more", "rows + 1", "columns"),
        ("slt, %more, %columns", "rows + 2", "columns"),
        ("sgt, %all, %rows", "rows + 1", "rows * columns"),
        ("sle, %less, %c64", "rows - 1", "64"),
        ("ult, %rows, %columns", "rows + 1", "columns"),
    ],
)
def test_what_is_asserted_of_sizes(order: str, least: str, most: str) -> None:
    """Polynomials in sizes, also in those of views."""
    body = f"""
      %c0 = arith.constant 0 : index
      %rows = memref.dim %a, %c0 : memref<?x?xf16>
      %columns = memref.dim %a, %c1 : memref<?x?xf16>
      %more = arith.addi %rows, %c1 : index
      %less = arith.subi %rows, %c1 : index
      %flat = memref.collapse_shape %a [[0, 1]] : memref<?x?xf16> into memref<?xf16>
      %all = memref.dim %flat, %c0 : memref<?xf16>
      %fit = arith.cmpi {order} : index
      cf.assert %fit, "they do"
    """
    names = Names(("a",), {("a", 0): "rows", ("a", 1): "columns"})
    found = read(body, "%a: memref<?x?xf16>", names)
    assert isinstance(found, Function)
    (check,) = found.checks
    assert str(check.least) == least
    assert sorted(str(check.most)) == sorted(most)


def test_equal_sizes_are_asserted() -> None:
    """Two orders, as of a conjunction; what always holds is left out."""
    body = """
      %c0 = arith.constant 0 : index
      %rows = memref.dim %a, %c0 : memref<?x?xf16>
      %columns = memref.dim %a, %c1 : memref<?x?xf16>
      %same = arith.cmpi eq, %rows, %columns : index
      %few = arith.cmpi sle, %rows, %c64 : index
      %true = arith.constant true
      %all = arith.andi %same, %few : i1
      cf.assert %all, "they are" cf.assert %true, "it is"
    """
    names = Names(("a",), {("a", 0): "rows", ("a", 1): "columns"})
    found = read(body, "%a: memref<?x?xf16>", names)
    assert isinstance(found, Function)
    expected = ("rows <= columns", "columns <= rows", "rows <= 64")
    assert (*map(str, found.checks),) == expected


@pytest.mark.parametrize(
    "order", ["ne, %rows, %c64", "ult, %less, %c64", "sle, %half, %c64"]
)
def test_what_cannot_be_checked_stands_in_the_way(order: str) -> None:
    """The launcher compares polynomials in sizes, nothing else."""
    body = f"""
      %c0 = arith.constant 0 : index
      %rows = memref.dim %a, %c0 : memref<?x4xf16>
      %half = arith.divui %rows, %c2 : index
      %less = arith.subi %rows, %c2 : index
      %fit = arith.cmpi {order} : index
      cf.assert %fit, "they do"
    """
    found = read(body, "%a: memref<?x4xf16>")
    assert isinstance(found, tuple)
    assert found[0].reason == (
        "asserts something else than orders of sizes of arguments"
    )


NAMES = Names(("a", "b"), {("a", 0): "M", ("a", 1): "K"})
OPEN = "%a: memref<?x?xf16, strided<[?, 1]>>, %b: memref<8xf32>"
SIZES = """
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %m = memref.dim %a, %c0 : memref<?x?xf16, strided<[?, 1]>>
      %k = memref.dim %a, %c1 : memref<?x?xf16, strided<[?, 1]>>
      %base, %at, %rows, %columns, %pitch, %one = memref.extract_strided_metadata %a
        : memref<?x?xf16, strided<[?, 1]>>
        -> memref<f16>, index, index, index, index, index"""


def launch(grid: int) -> str:
    """A launch of that many blocks: 1, 2 or 64."""
    return f"""
      gpu.launch_func @f_kernels::@f blocks in (%c{grid}, %c1, %c1)
        threads in (%c64, %c1, %c1) args(%b : memref<8xf32>)"""


def ways(body: str, arguments: str = OPEN) -> list[list[tuple[str, list[int]]]]:
    """Of each launch, its variants: the guard, and the blocks of each kernel."""
    found = read(SIZES + body, arguments, NAMES)
    assert isinstance(found, Function), found
    return [
        [
            (", ".join(map(str, one.guard)), [int(str(k.grid[0])) for k in one.kernels])
            for one in launch.variants
        ]
        for launch in found.launches
    ]


def test_a_branch_is_a_launch_with_variants() -> None:
    """A chain of them too; launches around it are launches of their own."""
    body = f"""
      %mk = arith.muli %m, %k : index
      %small = arith.cmpi slt, %mk, %c64 : index
      %rest = arith.remui %k, %c8 : index
      %whole = arith.cmpi eq, %rest, %c0 : index
      %apart = arith.remsi %pitch, %c8 : index
      %even = arith.cmpi eq, %apart, %c0 : index
      %rows_fit = arith.andi %whole, %even : i1
      %both = arith.andi %small, %rows_fit : i1
      {launch(64)}
      scf.if %both {{
        {launch(1)}
        {launch(2)}
      }} else {{
        scf.if %whole {{ {launch(2)} }} else {{ {launch(1)} }}
      }}
      {launch(2)}"""
    chain = [
        ("K * M + 1 <= 64, K % 8 == 0, a_stride_0 % 8 == 0", [1, 2]),
        ("K % 8 == 0", [2]),
        ("", [1]),
    ]
    assert ways(body) == [[("", [64])], chain, [("", [2])]]


def test_branches_inside_of_branches_are_more_variants() -> None:
    """What comes before and after them is launched in each."""
    body = f"""
      %tall = arith.cmpi sgt, %m, %k : index
      %wide = arith.cmpi uge, %k, %c64 : index
      scf.if %tall {{
        {launch(1)}
        scf.if %wide {{ {launch(2)} }}
        {launch(64)}
      }}"""
    assert ways(body) == [
        [("K + 1 <= M, 64 <= K", [1, 2, 64]), ("K + 1 <= M", [1, 64]), ("", [])]
    ]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("%c = arith.constant true", [("", [1])]),
        ("%c = arith.constant false", [("", [2])]),
        ("%c = arith.cmpi sle, %c1, %c2 : index", [("", [1])]),
        (
            "%c = arith.cmpi eq, %m, %c64 : index",
            [("M <= 64, 64 <= M", [1]), ("", [2])],
        ),
        (
            """%p = memref.extract_aligned_pointer_as_index %a
                : memref<?x?xf16, strided<[?, 1]>> -> index
               %r = arith.remui %p, %c64 : index
               %c = arith.cmpi eq, %r, %c0 : index""",
            [("address of a % 64 == 0", [1]), ("", [2])],
        ),
        (
            """%m8 = arith.muli %m, %c8 : index
               %r = arith.remui %m8, %c8 : index
               %c = arith.cmpi eq, %r, %c0 : index""",
            [("", [1])],
        ),
    ],
)
def test_conditions(condition: str, found: list[tuple[str, list[int]]]) -> None:
    """What is always or never true leaves no variant behind."""
    body = f"""
      {condition}
      scf.if %c {{ {launch(1)} }} else {{ {launch(2)} }}"""
    assert ways(body) == [found]


@pytest.mark.parametrize(
    "condition",
    [
        "%x = arith.cmpi ne, %m, %c64 : index",
        "%l = arith.subi %m, %c8 : index\n %x = arith.cmpi ult, %l, %c64 : index",
        "%h = arith.divui %m, %c8 : index\n %x = arith.cmpi sle, %h, %c64 : index",
        "%h = arith.remui %m, %c8 : index\n %x = arith.cmpi eq, %h, %c1 : index",
        "%h = arith.remui %m, %k : index\n %x = arith.cmpi eq, %h, %c0 : index",
        "%y = arith.cmpi sle, %m, %c64 : index\n %x = arith.ori %y, %y : i1",
    ],
)
def test_other_conditions_stand_in_the_way(condition: str) -> None:
    """At the op that is not understood, and said what is."""
    body = f"""
      %all = arith.cmpi sle, %m, %c8 : index
      {condition}
      %c = arith.andi %all, %x : i1
      scf.if %c {{ {launch(1)} }}"""
    found = read(SIZES + body, OPEN, NAMES)
    assert isinstance(found, tuple)
    (obstacle,) = found
    assert obstacle.op.name == condition.split("= ")[-1].split(" ")[0]
    assert obstacle.reason.startswith("decides which kernels are launched, expected a")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            f"scf.if %c {{ {launch(1)} memref.copy %b, %b "
            ": memref<8xf32> to memref<8xf32> }",
            "'memref.copy' was not compiled to a kernel",
        ),
        (
            "%n = scf.if %c -> index { scf.yield %m : index } "
            "else { scf.yield %k : index }",
            "chooses a value, expected launches only",
        ),
        (
            "scf.if %c {"
            + f"scf.if %d {{ {launch(1)} }} else {{ {launch(2)} }}" * 7
            + "}",
            "is 129 sequences of kernels, expected 64 at most",
        ),
    ],
)
def test_other_branches_stand_in_the_way(body: str, reason: str) -> None:
    """All that is said is in the reason."""
    conditions = """
      %c = arith.cmpi slt, %m, %k : index
      %d = arith.cmpi slt, %k, %c64 : index """
    found = read(SIZES + conditions + body, OPEN, NAMES)
    assert isinstance(found, tuple)
    assert [one.reason for one in found] == [reason]


def test_what_a_branch_asserts_is_its_own() -> None:
    """The launcher checks it where that variant runs; what always holds it does not."""
    body = f"""
      %c = arith.cmpi slt, %m, %k : index
      %d = arith.cmpi sle, %k, %c64 : index
      %e = arith.cmpi sle, %k, %k : index
      scf.if %c {{ cf.assert %d, "no" cf.assert %e, "no" {launch(1)} }}
      else {{ {launch(2)} }}"""
    found = read(SIZES + body, OPEN, NAMES)
    assert isinstance(found, Function)
    (first, other) = found.launches[0].variants
    assert (*map(str, first.checks),) == ("K <= 64",)
    assert (other.checks, found.checks) == ((), ())


def test_launch_sizes_must_be_known() -> None:
    """A bundle holds numbers, and sizes of arguments."""
    body = VIEW + "%n0 = arith.index_cast %i : i32 to index"
    found = read(body + LAUNCH.replace("(%c2, ", "(%n0, "), f"{ARRAYS}, %i: i32")
    assert isinstance(found, tuple)
    assert [obstacle.reason.split(",")[0] for obstacle in found] == [
        "argument 4 of 'f' is i32",
        "expected a launch whose sizes are constants or sizes of arguments",
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "f32",
        "tensor<4xf32>",
        "memref<4x4xf32, strided<[4, 1], offset: 4>>",
        "memref<4x4xf32, strided<[4, 1], offset: ?>>",
        "memref<4x4xf32, affine_map<(d0, d1) -> (d1, d0)>>",
    ],
)
def test_arguments_must_be_memrefs(kind: str) -> None:
    """The address of the first element, sizes and strides are all that is passed."""
    found = read("", f"%x: {kind}")
    assert isinstance(found, tuple)
    given = f"argument 1 of 'f' is {kind}"
    assert found[0].reason.startswith(f"{given}, expected a memref")


def test_code_with_branches_is_no_list_of_launches() -> None:
    """It cannot be stored as data."""
    found = read("cf.br ^bb1 ^bb1:")
    assert isinstance(found, tuple)
    assert found[0].reason == "has several blocks, expected straight-line code"


def test_declarations_are_no_functions_to_compile() -> None:
    """They have no body."""
    with make_context():
        module = ir.Module.parse("func.func private @f()")
    assert host_functions(module) == []
