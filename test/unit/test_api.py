"""The Python API: compile, call, store, load, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.errors import CompileError, ConfigError
from alcop_mlir.runtime import checking

TEXT = """
func.func @gemm(%A: memref<64x64xf16>, %B: memref<64x64xf16>,
                %C: memref<64x64xf32>) {
  linalg.matmul ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>)
                outs(%C : memref<64x64xf32>)
  return
}
"""
TENSORS = """
func.func @gemm(%A: tensor<64x64xf16>, %B: tensor<64x64xf16>,
                %C: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<64x64xf16>, tensor<64x64xf16>)
                     outs(%C : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %D : tensor<64x64xf32>
}
"""


def run(program: Any) -> None:
    """Run on random arrays, and check; inputs stay as they were."""
    before = checking.random_arrays(program.function)
    after = {name: array.copy() for name, array in before.items()}
    program(*after.values())
    assert checking.check(program.function, before, after).ok
    for parameter in program.function.parameters:
        if parameter.role == "in":
            now = after[parameter.name]
            assert before[parameter.name].tobytes() == now.tobytes()


def test_text_paths_and_modules_are_compiled(tmp_path: Path) -> None:
    """To the same code, and the module is not modified."""
    from alcop_mlir.bindings import ir, make_context

    file = tmp_path / "gemm.mlir"
    file.write_text(TEXT)
    with make_context():
        module = ir.Module.parse(TEXT)
    text = str(module)
    programs = [
        alcop_mlir.compile(source) for source in (TEXT, file, str(file), module)
    ]
    assert str(module) == text
    assert len({program.ptx for program in programs}) == 1
    run(programs[0])


def test_a_program_has_the_schedule_that_was_given() -> None:
    """As text or as a value."""
    text = "block=64,64,32 warp=32,32 stages=2,2"
    for schedule in (text, alcop_mlir.Schedule.parse(text)):
        program = alcop_mlir.compile(TEXT, alcop_mlir.find_target("sm_90"), schedule)
        (kernel,) = program.function.kernels
        assert str(kernel.schedule) == text
        assert [(p.level, p.stages) for p in kernel.pipelines] == [
            *[("shared", 2)] * 2,
            *[("register", 2)] * 2,
        ]
        assert ".target sm_90" in program.ptx
        run(program)


def test_how_many_variants_there_are() -> None:
    """Of a contraction with open sizes, four at most unless said otherwise."""
    text = TEXT.replace("64x64", "?x64")
    for single, program in (
        (False, alcop_mlir.compile(text)),
        (True, alcop_mlir.compile(text, variants=1)),
    ):
        (launch,) = program.function.launches
        assert (len(launch.variants) == 1) == single
    for wrong in (0, 17, 2.5):
        with pytest.raises(ConfigError, match=f"^variants={wrong}, expected 1 to 16$"):
            alcop_mlir.compile(text, variants=wrong)  # pyright: ignore[reportArgumentType]


def test_results_of_tensor_functions_are_arrays() -> None:
    """At the end of the list; arguments keep their contents, also the initial value."""
    program = alcop_mlir.compile(TENSORS)
    assert [(p.name, p.role) for p in program.function.parameters] == [
        ("arg0", "in"),
        ("arg1", "in"),
        ("arg2", "in"),
        ("result", "out"),
    ]
    run(program)


def test_a_tensor_function_returns_its_result(tmp_path: Path) -> None:
    """Arguments may go by the names that they have in the text; in a bundle too."""
    ones = np.ones((64, 64), np.float16)
    start = np.full((64, 64), 2, np.float32)
    program = alcop_mlir.compile(TENSORS)
    assert repr(program).startswith("<gemm(A: f16[64, 64], B: f16[64, 64], C: f32[")
    program.save(tmp_path / "gemm")
    for one in (program, alcop_mlir.load(tmp_path / "gemm")):
        for result in (one(ones, ones, start), one(C=start, A=ones, arg1=ones)):
            assert (result == 66).all()
    assert (start == 2).all()


def test_names_of_arguments_come_from_where_they_stand(tmp_path: Path) -> None:
    """In text, in a file, as locations of a caller's module; else there are none."""
    from alcop_mlir.bindings import ir, make_context

    def names(source: Any) -> list[str]:
        return [p.source_name for p in alcop_mlir.compile(source).function.parameters]

    file = tmp_path / "gemm.mlir"
    file.write_text(f"// A comment\n{TEXT}")
    assert names(TEXT) == names(file) == ["A", "B", "C"]
    located = TEXT.replace("64xf16>,", '64xf16> loc("left"),', 1)
    with make_context():
        module = ir.Module.parse(located)
    assert names(module) == ["left", "", ""]


def test_a_module_may_hold_several_functions() -> None:
    """Each is a program; a name selects the one to call."""
    other = TEXT.replace("64x", "32x").replace("x64", "x32").replace("@gemm", "@small")
    with pytest.raises(ConfigError, match=r"which function\? the bundle has gemm, s"):
        alcop_mlir.compile(TEXT + other)
    for name in ("gemm", "small"):
        program = alcop_mlir.compile(TEXT + other, function=name)
        assert program.function.name == name
        run(program)


def test_a_function_may_launch_several_kernels() -> None:
    """In order: the second matmul reads what the first wrote."""
    program = alcop_mlir.compile("""
      func.func @chain(%A: memref<64x64xf16>, %B: memref<64x64xf16>,
                       %C: memref<64x64xf16>, %D: memref<64x64xf32>) {
        %zero16 = arith.constant 0.0 : f16
        linalg.fill ins(%zero16 : f16) outs(%C : memref<64x64xf16>)
        linalg.matmul ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>)
                      outs(%C : memref<64x64xf16>)
        linalg.matmul ins(%C, %B : memref<64x64xf16>, memref<64x64xf16>)
                      outs(%D : memref<64x64xf32>)
        return
      }""")
    assert len(program.function.kernels) == 2
    assert len({kernel.name for kernel in program.function.kernels}) == 2
    assert [p.role for p in program.function.parameters] == ["in", "in", "out", "inout"]
    run(program)


@pytest.mark.parametrize("name", ["stored", "stored.zip"])
def test_stored_programs_run_without_mlir(tmp_path: Path, name: str) -> None:
    """In a fresh process that refuses to import it."""
    path = tmp_path / name
    alcop_mlir.compile(TEXT).save(path)
    code = f"""
import sys
for module in ("mlir", "torch_mlir", "llvmlite"):
    sys.modules[module] = None
import alcop_mlir
from alcop_mlir.runtime import checking
program = alcop_mlir.load({str(path)!r})
before = checking.random_arrays(program.function)
after = {{name: array.copy() for name, array in before.items()}}
program(*after.values())
assert checking.check(program.function, before, after).ok
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """Also from another process, with other hash seeds."""
    code = "import sys, alcop_mlir; alcop_mlir.compile(sys.argv[1]).save(sys.argv[2])"
    paths = [tmp_path / "1.zip", tmp_path / "2.zip"]
    for path in paths:
        subprocess.run([sys.executable, "-c", code, TEXT, path], check=True)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_importing_imports_nothing_heavy() -> None:
    """Neither MLIR, CuPy, scikit-learn, llvmlite nor NumPy."""
    code = """
import sys, alcop_mlir
heavy = {"mlir", "torch_mlir", "cupy", "sklearn", "llvmlite", "numpy", "rich"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("no/such.mlir", ConfigError, r"cannot read 'no/such\.mlir': No such file"),
        (Path("no/such"), ConfigError, "cannot read 'no/such': No such file"),
        ("hello", ConfigError, "-:1:1: custom op 'hello' is unknown"),
        (3, ConfigError, "cannot compile a int, expected MLIR text, a path, or a mod"),
        ("module {}", CompileError, "nothing to compile: no function computes"),
        ("func.func @f() { return }", CompileError, "nothing to compile"),
        (
            "func.func @f(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {\n"
            "  linalg.softmax dimension(1) ins(%a : memref<4x8xf32>)"
            " outs(%b : memref<4x8xf32>)\n  return\n}",
            CompileError,
            r"-:2:3: 'linalg.softmax' was not compiled to a kernel: is not a loop nest",
        ),
        (
            "func.func @f(%a: memref<f32>, %b: memref<f32>) {\n"
            "  %0 = memref.load %a[] : memref<f32>\n"
            "  memref.store %0, %b[] : memref<f32>\n  return\n}",
            CompileError,
            "-:2:8: 'memref.load' was not compiled to a kernel$",
        ),
    ],
)
def test_what_cannot_be_compiled_is_refused(
    source: Any, error: type[Exception], message: str
) -> None:
    """With its location, and the reason."""
    with pytest.raises(error, match=message) as caught:
        alcop_mlir.compile(source)
    assert "\n" not in str(caught.value)


def test_a_schedule_that_does_not_fit_is_refused() -> None:
    """What it needs, and what there is."""
    with pytest.raises(CompileError, match=r"needs 131072 bytes .* sm_86 has 101376"):
        alcop_mlir.compile(
            TEXT.replace("64x64", "512x512"),
            "sm_86",
            "block=128,128,32 warp=64,64 stages=8,2",
        )
    with pytest.raises(ConfigError, match="unknown target 'sm_70'"):
        alcop_mlir.compile(TEXT, "sm_70")
    with pytest.raises(ConfigError, match="cannot read 'block:1'"):
        alcop_mlir.compile(TEXT, schedule="block:1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block": (64, 32, 1)}, "needs 2048 threads per block, sm_86 has 1024"),
        ({"shared_bytes": 101377}, "needs 101377 bytes of shared memory per block"),
        ({"shared_bytes": 101000, "static_shared_bytes": 377}, "needs 101377 bytes"),
        ({"registers": 129, "block": (512, 1, 1)}, "needs 66048 registers per block"),
    ],
)
def test_a_kernel_over_the_limits_is_refused(
    change: dict[str, Any], message: str
) -> None:
    """What it needs, and what the target has; at the limit it passes."""
    from alcop_mlir.compilation import compiler
    from alcop_mlir.manifest.kernels import Kernel

    at_limit = {"block": (1024, 1, 1), "shared_bytes": 101376, "registers": 64}
    fits = Kernel("k", "m", (), (1, 1, 1), **at_limit)
    compiler.check_limits(fits, alcop_mlir.find_target("sm_86"))
    with pytest.raises(CompileError, match=f"kernel 'k' {message}"):
        compiler.check_limits(replace(fits, **change), alcop_mlir.find_target("sm_86"))


def test_registered_passes_are_known_to_pipelines() -> None:
    """Beside our own and upstream's."""
    from alcop_mlir.bindings import ir, make_context
    from alcop_mlir.passes.base import Pass, option

    seen: list[str] = []

    @alcop_mlir.register_pass
    @dataclass(frozen=True)
    class Look(Pass):
        """Look at a function."""

        name = "test-look"
        anchor = "func.func"
        note: str = option("", "what to say")

        def run(self, op: Any) -> None:
            seen.append(self.note)

    with make_context():
        module = ir.Module.parse(TEXT)
    alcop_mlir.run_pipeline(
        module, "builtin.module(func.func(test-look{note=here},canonicalize))"
    )
    assert seen == ["here"]
    with pytest.raises(ConfigError, match="unknown pass 'no-such-pass'"):
        alcop_mlir.run_pipeline(module, "builtin.module(no-such-pass)")


def test_the_python_example_runs() -> None:
    """As a user would run it."""
    example = Path(__file__).resolve().parents[2] / "examples" / "from_python.py"
    done = subprocess.run(
        [sys.executable, example], check=True, capture_output=True, text=True
    )
    first, second = done.stdout.splitlines()
    assert first == (
        "<matmul(A: f16[128, 256], B: f16[256, 128], C: f32[128, 128]) for sm_80>"
    )
    assert float(second.split(": ")[1]) < 1e-4
