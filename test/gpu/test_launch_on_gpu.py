"""On a real GPU: the examples, streams, and arrays of other libraries."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime import checking, launch, measure
from alcop_mlir.runtime.constants import reference_constants
from alcop_mlir.tools import run as run_tool

pytestmark = pytest.mark.gpu
EXAMPLES = sorted(Path(__file__).resolve().parents[2].glob("examples/*.mlir"))
LARGE = """
func.func @large(%A: memref<1024x1024xf16>, %B: memref<1024x1024xf16>,
                 %C: memref<1024x1024xf32>) {
  linalg.matmul ins(%A, %B : memref<1024x1024xf16>, memref<1024x1024xf16>)
                outs(%C : memref<1024x1024xf32>)
  return
}
"""


@pytest.fixture
def cupy() -> Any:
    """The module."""
    return pytest.importorskip("cupy")


class DlpackOnly:
    """A CuPy array that offers nothing but DLPack."""

    def __init__(self, array: Any):
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__


class InterfaceOnly:
    """A CuPy array that offers nothing but `__cuda_array_interface__`."""

    def __init__(self, array: Any):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def compile_for_this_gpu(text: str, schedule: str | None = None) -> Any:
    return alcop_mlir.compile(text, launch.gpu_target(), schedule)


def is_right(program: Any, run: Any) -> bool:
    """Whether `run(arrays)` gives what the reference does."""
    before = checking.random_arrays(program.function)
    arrays = launch.to_device(before, "cuda")
    run(list(arrays.values()))
    read = reference_constants(program.bundle, program.function)
    after = launch.to_host(arrays)
    return checking.check(program.function, before, after, read).ok


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_on_the_gpu(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By themselves, and right."""
    assert run_tool.main([str(example), "--device", "cuda"]) == 0
    assert "TFLOP/s" in capsys.readouterr().out


@pytest.mark.parametrize("stages", ["1,1", "2,1", "3,2", "4,2"])
def test_stages_are_right_on_the_gpu(stages: str) -> None:
    """Also with more than 48 KB of shared memory, which has to be asked for."""
    schedule = f"block=128,128,32 warp=64,64 stages={stages}"
    program = compile_for_this_gpu(LARGE, schedule)
    assert is_right(program, lambda arrays: program(*arrays))


@pytest.mark.parametrize("kind", [DlpackOnly, InterfaceOnly])
def test_arrays_of_other_libraries_are_not_copied(cupy: Any, kind: type) -> None:
    """The result is in the very array that was given."""
    program = compile_for_this_gpu(LARGE)
    assert is_right(program, lambda arrays: program(*map(kind, arrays)))


def test_a_stream_may_be_given(cupy: Any) -> None:
    """In all its forms."""
    program = compile_for_this_gpu(LARGE)
    stream = cupy.cuda.Stream(non_blocking=True)
    protocol = SimpleNamespace(__cuda_stream__=lambda: (0, stream.ptr))
    forms = (stream, stream.ptr, SimpleNamespace(cuda_stream=stream.ptr), protocol)
    for form in forms:

        def run(arrays: Any, form: Any = form) -> None:
            cupy.cuda.Device().synchronize()
            program(*arrays, stream=form)
            stream.synchronize()

        assert is_right(program, run)


def test_the_ptx_of_an_older_target_runs() -> None:
    """The driver assembles it."""
    program = alcop_mlir.compile(LARGE, "sm_80")
    assert is_right(program, lambda arrays: program(*arrays))


def test_wrong_arrays_are_refused(cupy: Any) -> None:
    """Before anything runs."""
    program = compile_for_this_gpu(LARGE)
    a = cupy.zeros((1024, 1024), cupy.float16)
    with pytest.raises(LaunchError, match="has dtype float16, expected float32"):
        program(a, a, cupy.zeros((1024, 1024), cupy.float16))
    with pytest.raises(
        LaunchError, match="is in main memory, expected an array in GPU"
    ):
        program(a, np.zeros((1024, 1024), np.float16), a)


def test_times_are_measured(cupy: Any) -> None:
    """2 * 1024^3 operations take more than a microsecond, and less than a second."""
    program = compile_for_this_gpu(LARGE)
    arrays = launch.to_device(checking.random_arrays(program.function), "cuda")
    timing = measure.time_on_gpu(program, list(arrays.values()), 10)
    assert 1e-6 < timing.median < 1
