"""Calls with names, and results that a call allocates."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bundles import arrays, bundle, matmul
from fake_cupy import FakeCupy, GpuArray
from fake_emulator import FakeEmulator

from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.runtime.launch import Program


def returning(rows: int | str = 64, *more: Parameter) -> Function:
    """`matmul` whose C is a result; A is called `left` in its source."""
    a, b, c = matmul(rows).parameters
    results = (replace(c, name="result"), *more)
    named = replace(a, source_name="left")
    plain = matmul(rows, arguments=())
    return replace(plain, parameters=(named, b, *results), reference=())


def test_a_result_that_is_left_out_is_returned(emulator: FakeEmulator) -> None:
    """Of the sizes that the arguments have; one that is given is written, as ever."""
    a, b, c = arrays(m=65)
    program = Program(bundle(returning("M")))
    made = program(a, b)
    assert (made.shape, made.dtype) == ((65, 32), np.float32)
    assert program(a, b, c) is None
    assert program(a, b, result=c) is None
    assert len(emulator.calls) == 3


@pytest.mark.usefixtures("emulator")
def test_several_results_are_a_tuple() -> None:
    second = Parameter("result1", "i8", (3,), "out")
    program = Program(bundle(returning(64, second)))
    one, other = program(*arrays()[:2])
    assert (one.shape, other.shape, other.dtype) == ((64, 32), (3,), np.int8)
    only = program(*arrays())
    assert only.shape == (3,)


def test_names_are_those_of_the_source_or_of_the_manifest(
    emulator: FakeEmulator,
) -> None:
    a, b, c = arrays()
    given: list[dict[str, Any]] = [{"left": a, "B": b}, {"B": b, "A": a, "result": c}]
    plain = replace(returning(), launches=matmul().launches)
    with_c = replace(plain, parameters=(*plain.parameters[:2], matmul().parameters[2]))
    for named in given:
        named["C"] = named.pop("result", c)
        Program(bundle(with_c))(**named)
    for call in emulator.calls:
        assert [id(one) for one in call[4]] == [id(a), id(b), id(c)]


@pytest.mark.parametrize(
    ("count", "named", "message"),
    [
        (2, {"right": 0}, "'matmul' has no argument 'right', it has left, B, result"),
        (2, {"left": 0}, "'matmul' got 'left' twice"),
        (1, {}, "'matmul' got 1 arrays, expected 2 to 3: left, B, result"),
        (1, {"result": 0}, "'matmul' got 2 arrays, expected 2 to 3: left, B, result"),
    ],
)
def test_names_that_do_not_fit(
    emulator: FakeEmulator, count: int, named: dict[str, Any], message: str
) -> None:
    with pytest.raises(LaunchError) as error:
        Program(bundle(returning()))(*arrays()[:count], **named)
    assert str(error.value) == message
    assert emulator.calls == []


def test_a_size_that_only_a_result_has_must_be_given(emulator: FakeEmulator) -> None:
    open_ended = Parameter("result1", "f32", ("P",), "out")
    program = Program(bundle(returning(64, open_ended)))
    message = r"argument 4 \('result1'\) has P elements along one dimension, which no"
    with pytest.raises(LaunchError, match=message):
        program(*arrays()[:2])
    assert emulator.calls == []


def test_results_of_a_gpu_are_cupys(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the GPU and the stream of the call."""
    fake = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    a, b, _ = (GpuArray(array, number=1) for array in arrays())
    made = Program(bundle(returning()))(a, b)
    assert isinstance(made, GpuArray)
    assert (made.shape, made.number, len(fake.launches)) == ((64, 32), 1, 1)
