"""What a kernel is passed for a tensor map: of the driver, and of the emulator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.kernels import TensorMap
from alcop_mlir.polynomials import constant, size
from alcop_mlir.runtime import tensor_maps
from alcop_mlir.runtime.emulator import TensorMap as EmulatedMap

MAP = TensorMap(
    array="A",
    dtype="bf16",
    shape=(size("K"), size("M")),
    strides=(constant(2) * size("K"),),
    box=(64, 128),
    element_strides=(1, 1),
    swizzle=128,
    l2_promotion=128,
)
SIZES = {"M": 100, "K": 72}
ADDRESS = 0x7F0000000010


class Driver:
    """Stands for cuTensorMapEncodeTiled: notes what it is given, and fills the map."""

    def __init__(self, code: int = 0):
        self.calls: list[list[Any]] = []
        self.code = code

    def __call__(self, *given: Any) -> int:
        self.calls.append(
            [
                list(one) if isinstance(one, ctypes.Array) else one.value
                for one in given[1:]
            ]
        )
        address = given[0].value
        assert address % 64 == 0
        ctypes.memset(address, 0xA5, 128)
        return self.code


@pytest.fixture(autouse=True)
def maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_maps, "_MAPS", {})


def with_driver(monkeypatch: pytest.MonkeyPatch, code: int = 0) -> Driver:
    driver = Driver(code)
    monkeypatch.setattr(tensor_maps, "_driver", lambda: driver)
    return driver


def test_the_driver_is_given_sizes_in_its_own_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """cuda.h: bf16 is 9, no interleave 0, swizzle of 128 bytes 3, promotion 2."""
    driver = with_driver(monkeypatch)
    made = tensor_maps.on_gpu(MAP, ADDRESS, SIZES)
    (call,) = driver.calls
    assert call == [9, 2, ADDRESS, [72, 100], [144], [64, 128], [1, 1], 0, 3, 2, 0]
    assert made.tobytes() == b"\xa5" * 128
    assert made.dtype.itemsize == 128


@pytest.mark.parametrize(
    ("dtype", "number"), [("i16", 1), ("i32", 3), ("f16", 6), ("f32", 7), ("tf32", 11)]
)
def test_types_are_those_of_the_driver(
    dtype: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a kernel stores by TMA, and what it copies; cuda.h has the numbers."""
    driver = with_driver(monkeypatch)
    tensor_maps.on_gpu(replace(MAP, dtype=dtype), ADDRESS, SIZES)
    assert driver.calls[0][0] == number


def test_the_distance_of_one_matrix_to_no_other_is_not_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a batch of one, or of a single row, whose distances nothing depends on."""
    driver = with_driver(monkeypatch)
    given = replace(
        MAP,
        shape=(size("K"), size("M"), constant(1)),
        strides=(constant(2) * size("K"), constant(0)),
        box=(64, 128, 1),
        element_strides=(1, 1, 1),
    )
    tensor_maps.on_gpu(given, ADDRESS, SIZES)
    assert driver.calls[0][4] == [144, 144]
    tensor_maps.on_gpu(given, ADDRESS, {"M": 1, "K": 9})
    assert driver.calls[1][4] == [32, 32]
    array = np.ones((1, 100, 72), np.uint16)
    seen = tensor_maps.on_emulator(given, array, SIZES).array
    np.testing.assert_array_equal(seen, array)


def test_a_map_is_encoded_once_for_each_place_and_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = with_driver(monkeypatch)
    for address, sizes in (
        (ADDRESS, SIZES),
        (ADDRESS, SIZES),
        (ADDRESS + 16, SIZES),
        (ADDRESS, {**SIZES, "M": 101}),
    ):
        tensor_maps.on_gpu(MAP, address, sizes)
    assert len(driver.calls) == 3


def test_what_the_driver_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with_driver(monkeypatch, code=1)
    with pytest.raises(LaunchError, match="refuses the tensor map of 'A': error 1"):
        tensor_maps.on_gpu(MAP, ADDRESS, SIZES)


@pytest.mark.parametrize("encode", [tensor_maps.on_gpu])
@pytest.mark.parametrize(
    ("address", "sizes", "message"),
    [
        (ADDRESS + 2, SIZES, "an address that is a multiple of 16, got 0x7f0000000012"),
        (ADDRESS, {"M": 4, "K": 9}, "rows 18 bytes apart, expected a multiple of 16"),
        (ADDRESS, {"M": 2**33, "K": 8}, "8589934592 elements along dimension 1"),
    ],
)
def test_limits_are_named(
    encode: Callable[..., Any],
    address: int,
    sizes: dict[str, int],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = with_driver(monkeypatch)
    with pytest.raises(LaunchError, match=message):
        encode(MAP, address, sizes)
    assert not driver.calls


def test_empty_arrays_need_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = with_driver(monkeypatch)
    made = tensor_maps.on_gpu(MAP, 0, {"M": 0, "K": 8})
    assert made.tobytes() == bytes(128)
    assert not driver.calls


def test_without_a_driver_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    tensor_maps._driver.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(LaunchError, match="the CUDA driver has no cuTensorMapEncode"):
        tensor_maps.on_gpu(MAP, ADDRESS, SIZES)


def test_the_emulator_sees_the_array_by_rows() -> None:
    memory = np.zeros((100, 72), np.uint16)
    made = tensor_maps.on_emulator(MAP, memory, SIZES)
    assert isinstance(made, EmulatedMap)
    assert made.array.shape == (100, 72)
    assert np.shares_memory(made.array, memory)
    assert (tuple(made.box), made.swizzle, made.dtype) == ((128, 64), 128, "bf16")
