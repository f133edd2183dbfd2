"""Running programs: what is checked before, and what the emulator is given."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bundles import PTX, arrays, bundle, chain, matmul, pointers, sizes
from fake_emulator import FakeEmulator

from alcop_mlir.errors import ConfigError, EmulationError, LaunchError
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import CeilDiv, unguarded
from alcop_mlir.polynomials import size
from alcop_mlir.runtime.launch import Program

# --- the emulator


def test_numpy_arrays_go_to_the_emulator_as_they_are(emulator: FakeEmulator) -> None:
    """The very arrays: it writes C in place."""
    given = arrays()
    Program(bundle())(*given)
    ((ptx, name, grid, block, arguments, shared),) = emulator.calls
    assert (ptx, name, grid, block, shared) == (
        *(PTX, "matmul", (2, 1, 1), (128, 1, 1)),
        1024,
    )
    assert all(one is other for one, other in zip(arguments, given, strict=True))


def test_dlpack_arrays_in_main_memory_are_not_copied(emulator: FakeEmulator) -> None:
    """As tensors of PyTorch on a CPU."""

    class Tensor:
        def __init__(self, array: np.ndarray[Any, Any]):
            self.__dlpack__ = array.__dlpack__
            self.__dlpack_device__ = array.__dlpack_device__

    given = arrays()
    Program(bundle())(*given[:1], Tensor(given[1]), *given[2:])
    assert np.shares_memory(emulator.calls[0][4][1], given[1])


def test_sizes_are_bound_by_the_shapes(emulator: FakeEmulator) -> None:
    """A named size is passed to the kernel, and divides the grid, rounded up."""
    tiles = CeilDiv(size("M"), 64)
    function = matmul("M", grid=(tiles, 3, (2, tiles, tiles)))
    Program(bundle(function))(*arrays(m=65))
    ((_, _, grid, _, arguments, _),) = emulator.calls
    assert grid == (2, 3, 8)
    assert arguments[3] == 65


def test_kernels_run_in_order(emulator: FakeEmulator) -> None:
    """A function with two kernels launches both."""
    one = matmul()
    second = replace(one.kernels[0], name="second", arguments=pointers("B", "C"))
    given = arrays()
    Program(bundle(replace(one, launches=(*one.launches, unguarded(second)))))(*given)
    assert [call[1] for call in emulator.calls] == ["matmul", "second"]
    assert [id(a) for a in emulator.calls[1][4]] == [id(a) for a in given[1:]]


def test_hazards_are_errors(emulator: FakeEmulator) -> None:
    """Five of them in words, the rest as a number."""
    emulator.hazards = tuple(f"race {number}" for number in range(7))
    with pytest.raises(EmulationError, match="kernel 'matmul' has hazards:") as caught:
        Program(bundle())(*arrays())
    assert "race 4\n" in str(caught.value)
    assert "race 5" not in str(caught.value)
    assert str(caught.value).endswith("and 2 more")


# --- what is checked before anything runs


def readonly(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


def misaligned(like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    room = np.zeros(like.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 16 + 8
    return room[start : start + like.nbytes].view(like.dtype).reshape(like.shape)


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (0, lambda a: a[:, :40], r"argument 1 \('A'\) has shape 64x40, expected 64x48"),
        (0, lambda a: a.T, r"has shape 48x64, expected 64x48"),
        (0, lambda a: a.ravel(), r"has shape 3072, expected 64x48"),
        (1, lambda a: a.astype("f4"), r"\('B'\) has dtype float32, expected float16"),
        (
            1,
            lambda a: np.asfortranarray(a),
            r"has strides of 2x96 bytes, expected a con",
        ),
        (1, lambda a: np.repeat(a, 2, 1)[:, ::2], r"strides of 128x4 bytes"),
        (1, lambda a: a[::-1], r"has strides of -64x2 bytes"),
        (2, readonly, r"\('C'\) is read-only, expected an array to write to"),
        (2, misaligned, r"\('C'\) starts 8 bytes behind a multiple of 16 bytes"),
        (2, lambda a: a.tolist(), r"\('C'\) is a list, expected a NumPy array, or"),
        (2, lambda _: None, r"\('C'\) is a NoneType, expected a NumPy array"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(
    emulator: FakeEmulator, number: int, change: Any, message: str
) -> None:
    """One line: what was given, what is expected; and nothing ran."""
    given: list[Any] = arrays()
    given[number] = change(given[number])
    with pytest.raises(LaunchError, match=message):
        Program(bundle())(*given)
    assert emulator.calls == []


def test_the_number_of_arrays_is_checked(emulator: FakeEmulator) -> None:
    """The message names the parameters."""
    with pytest.raises(LaunchError, match="got 2 arrays, expected 3: A, B, C"):
        Program(bundle())(*arrays()[:2])
    assert emulator.calls == []


def test_named_sizes_must_agree(emulator: FakeEmulator) -> None:
    """M is bound by A; C must have as many rows."""
    given = arrays(m=65)
    given[2] = given[2][:64]
    with pytest.raises(LaunchError, match=r"'C'\) has shape 64x32, expected 65x32"):
        Program(bundle(matmul("M")))(*given)
    assert emulator.calls == []


def test_sizes_must_fit_together(emulator: FakeEmulator) -> None:
    """What the host asserts is checked before anything runs."""
    program = Program(bundle(chain("M")))
    with pytest.raises(LaunchError, match=r"M is 2, expected at least 3$"):
        program(np.zeros((2, 8), "f4"), np.zeros((2, 8), "f4"))
    assert emulator.calls == []
    program(np.zeros((3, 8), "f4"), np.zeros((3, 8), "f4"))
    assert len(emulator.calls) == 3


def strided_matmul() -> Function:
    """A kernel that takes the strides of the rows of A and C."""
    plain = matmul()
    a, b, c = plain.parameters
    parameters = (
        replace(a, strides=("A_rows", 1), row_alignment=16),
        b,
        replace(c, strides=("C_rows", 1)),
    )
    (kernel,) = plain.kernels
    taken = (*pointers("A", "B", "C"), *sizes("A_rows", "C_rows"))
    kernel = replace(kernel, arguments=taken)
    return replace(plain, parameters=parameters, launches=(unguarded(kernel),))


def test_strides_are_arguments(emulator: FakeEmulator) -> None:
    """In elements. Rows may lie between those of another array."""
    _, b, _ = arrays()
    room = np.zeros((64, 128), "f2")
    a = room[:, :48]
    c = room.view("f4")[:, 24:56]
    Program(bundle(strided_matmul()))(a, b, c)
    assert emulator.calls[0][4][3:] == [128, 64]


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (
            0,
            lambda a: wide(a, 52)[:, :48],
            r"strides of 104x2 bytes, but the function ",
        ),
        (0, lambda a: wide(a, 96)[:, ::2], r"192x4 bytes, expected A_rowsx2"),
        (0, lambda a: a[::-1], r"-96x2 bytes, expected multiples of 2, none negative"),
        (
            2,
            lambda c: np.lib.stride_tricks.as_strided(c, c.shape, (64, 4)),
            r"\('C'\) has strides of 64x4 bytes and is written, expected rows apart",
        ),
        (
            2,
            lambda c: np.lib.stride_tricks.as_strided(c, c.shape, (130, 4)),
            r"130x4 bytes, expected multiples of 4",
        ),
    ],
)
def test_strides_that_do_not_fit(
    emulator: FakeEmulator, number: int, change: Any, message: str
) -> None:
    given: list[Any] = arrays()
    given[number] = change(given[number])
    with pytest.raises(LaunchError, match=message):
        Program(bundle(strided_matmul()))(*given)
    assert emulator.calls == []


def test_rows_side_by_side_must_not_meet(emulator: FakeEmulator) -> None:
    _, b, _ = arrays()
    room = np.zeros((64, 128), "f2")
    c = room.view("f4")[:, 20:52]
    with pytest.raises(LaunchError, match=r"'C'\) is written and overlaps"):
        Program(bundle(strided_matmul()))(room[:, :48], b, c)
    assert emulator.calls == []


def wide(like: np.ndarray[Any, Any], columns: int) -> np.ndarray[Any, Any]:
    return np.zeros((like.shape[0], columns), like.dtype)


def test_an_output_must_not_overlap_an_input(emulator: FakeEmulator) -> None:
    """Inputs may overlap each other: nobody writes them."""
    square = matmul(32, 32, 32)
    room = np.zeros(6144, np.uint8)
    a = room[:2048].view(np.float16).reshape(32, 32)
    Program(bundle(square))(a, a, np.zeros((32, 32), np.float32))
    over = room[1024:5120].view(np.float32).reshape(32, 32)
    with pytest.raises(LaunchError, match=r"'C'\) is written and overlaps .*'A'\)"):
        Program(bundle(square))(a, a, over)
    assert len(emulator.calls) == 1


def test_unknown_devices_are_refused() -> None:
    """By their name."""
    with pytest.raises(ConfigError, match="unknown device 'tpu', expected one of auto"):
        Program(bundle(), device="tpu")


# --- where kernels run, there need be no MLIR


def test_the_runtime_needs_neither_mlir_nor_llvmlite() -> None:
    """A fresh process that refuses to import them loads, launches and checks."""
    code = """
import sys
for name in ("mlir", "torch_mlir", "llvmlite", "cupy", "sklearn"):
    sys.modules[name] = None
import alcop_mlir
from alcop_mlir.manifest import bundles
from alcop_mlir.runtime import (
    arrays,
    bundle,
    launch,
    measure,
    checking,
)
assert not any(name.startswith("alcop_mlir.bindings") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
