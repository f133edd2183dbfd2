"""Which variant of a kernel is launched, and what no launch can do yet."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bundles import arrays, bundle, matmul, pointers
from fake_cupy import FakeCupy, GpuArray
from fake_emulator import FakeEmulator

from alcop_mlir.errors import ConfigError
from alcop_mlir.manifest.arrays import Intermediate
from alcop_mlir.manifest.functions import Function, Prepare
from alcop_mlir.manifest.kernels import (
    Aligned,
    AtMost,
    Condition,
    Divisible,
    Launch,
    TensorMap,
    Variant,
)
from alcop_mlir.polynomials import constant, size
from alcop_mlir.runtime.bundle import load, save
from alcop_mlir.runtime.launch import Program
from alcop_mlir.runtime.workspace import plan

SMALL = AtMost(size("M") * size("M"), constant(64 * 64))
EVEN = Divisible(size("M") + constant(1), 2)


def guarded(*guards: tuple[Condition, ...]) -> Function:
    """`matmul("M")` with a variant for each guard, `k0`, `k1`, ... before the last."""
    function = matmul("M")
    (kernel,) = function.kernels
    variants = [
        Variant(replace(kernel, name=f"k{number}"), guard)
        for number, guard in enumerate(guards)
    ]
    return replace(function, launches=(Launch((*variants, Variant(kernel))),))


@pytest.mark.parametrize(
    ("guards", "rows", "name"),
    [
        ([(SMALL,)], 64, "k0"),
        ([(SMALL,)], 65, "matmul"),
        ([(EVEN,)], 65, "k0"),
        ([(EVEN,)], 64, "matmul"),
        ([(SMALL, EVEN), (SMALL,), (EVEN,)], 63, "k0"),
        ([(SMALL, EVEN), (SMALL,), (EVEN,)], 64, "k1"),
        ([(SMALL, EVEN), (SMALL,), (EVEN,)], 65, "k2"),
        ([(SMALL, EVEN), (SMALL,), (EVEN,)], 66, "matmul"),
        ([(Aligned("A", 16),)], 64, "k0"),
        ([(Aligned("A", 1 << 60),)], 64, "matmul"),
        ([()], 64, "k0"),
    ],
)
def test_the_first_variant_whose_guard_holds_is_launched(
    emulator: FakeEmulator,
    guards: list[tuple[Condition, ...]],
    rows: int,
    name: str,
    tmp_path: Path,
) -> None:
    """All of its conditions; the last one has none. Also from a stored bundle."""
    stored = bundle(guarded(*guards))
    save(stored, tmp_path / "out")
    assert load(tmp_path / "out") == stored
    Program(load(tmp_path / "out"))(*arrays(m=rows))
    assert [call[1] for call in emulator.calls] == [name]


def test_variants_are_chosen_on_a_gpu_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their module is loaded once, whichever are launched."""
    cupy = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    program = Program(bundle(guarded((SMALL,))))
    for rows in (64, 65, 64):
        program(*map(GpuArray, arrays(m=rows)))
    assert [launch.name for launch in cupy.launches] == ["k0", "matmul", "k0"]
    assert len(set(cupy.loaded)) == 1


def test_a_last_variant_with_a_guard_is_refused() -> None:
    """No kernel would be launched where it does not hold."""
    (kernel,) = matmul("M").kernels
    for variants in ((), (Variant(kernel, (SMALL,)),)):
        with pytest.raises(ConfigError, match="the last variant must have no guard"):
            Launch(variants)


def test_a_buffer_that_one_variant_uses_has_room() -> None:
    function = guarded((SMALL,))
    first, last = function.launches[0].variants
    using = replace(first.kernel, arguments=pointers("A", "x"))
    function = replace(
        function,
        launches=(Launch((replace(first, kernel=using), last)),),
        intermediates=(Intermediate("x", "f32", ("M",)),),
    )
    assert plan(function, {"M": 65}).bytes == 260


TENSOR_MAP = TensorMap(
    array="A",
    dtype="f16",
    shape=(constant(48), constant(64)),
    strides=(constant(96),),
    box=(64, 64),
    element_strides=(1, 1),
    swizzle=128,
)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            replace(
                matmul(),
                prepare=Prepare("pack", ("B",), (Intermediate("Bt", "f16", (8,)),)),
            ),
            "'pack' prepares its weights, which this version does not support",
        ),
        (
            matmul(arguments=(TENSOR_MAP,)),
            "kernel 'matmul' takes a tensor map of 'A', which this version does not",
        ),
    ],
)
def test_what_cannot_be_launched_yet_is_refused(
    function: Function, message: str, tmp_path: Path
) -> None:
    """Not silently left out: neither launched nor stored."""
    with pytest.raises(ConfigError, match=f"'matmul' cannot be launched: {message}"):
        Program(bundle(function))
    with pytest.raises(ConfigError, match="cannot be stored"):
        save(bundle(function), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_code_is_stored_once_per_module(tmp_path: Path) -> None:
    """However many kernels it holds."""
    save(bundle(guarded((SMALL,), (EVEN,))), tmp_path / "out")
    names = sorted(file.name.split("-")[0] for file in (tmp_path / "out").iterdir())
    assert names == ["manifest.json", "matmul", "matmul"]  # PTX and cubin
