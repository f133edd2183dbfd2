"""Copies that are made asynchronous where they are change no bit and make no hazard."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from differential import (
    SCHEDULES,
    VISIBILITIES,
    Compiled,
    Settings,
    compile_both,
    launch,
)

from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.ptx import emit_ptx
from alcop_mlir.target import find_target

KERNELS = Path(__file__).resolve().parents[2] / "bench" / "foreign"
PEERS = Path(__file__).resolve().parent / "peers" / "tvm"
KEYS = 64


def compiled(kernel: str, step: str) -> str:
    """The PTX of a kernel of the bench, `step` after its waits were placed."""
    with make_context(), ir.Location.unknown():
        alcop.load()
        module = ir.Module.parse((KERNELS / f"{kernel}.mlir").read_text())
        run_pipeline(
            module,
            f"builtin.module(alcop-place-waits,{step}alcop-distribute-copies,"
            "canonicalize,cse,alcop-outline-kernels,alcop-lower-to-nvvm)",
        )
        ops = [op.operation for op in module.body.operations]
        (kernels,) = [op for op in ops if op.name == "gpu.module"]
        return emit_ptx(kernels, find_target("sm_80"))


def attention(ptx: str, visibility: str, schedule: str) -> tuple[bytes, int]:
    """The bits of what one block computes, and the number of hazards."""
    random = np.random.default_rng(0)
    queries, keys, values = (
        random.uniform(-1, 1, (rows, 32)).astype("f4") for rows in (1024, 4096, 4096)
    )
    out = np.zeros((1024, 32), "f4")
    done = emulate(
        ptx,
        None,
        (1, 1, 1),
        (128, 1, 1),
        [queries, keys, values, out, KEYS],
        visibility=visibility,
        schedule=schedule,
    )
    return out.tobytes(), len(done.hazards)


@pytest.fixture(scope="module")
def plain() -> str:
    return compiled("attention", "")


@pytest.fixture(scope="module")
def asynchronous() -> str:
    return compiled("attention", "alcop-make-async{assume-noalias-args=true},")


@pytest.mark.parametrize("visibility", VISIBILITIES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_bits_stay(
    plain: str, asynchronous: str, visibility: str, schedule: str
) -> None:
    assert "cp.async" not in plain
    # Of the keys, of the values, and two for the 32 bytes of queries of a thread.
    assert asynchronous.count("cp.async.cg") == 4
    expected = attention(plain, visibility, schedule)
    assert expected[1] == 0
    assert attention(asynchronous, visibility, schedule) == expected


def test_a_missing_wait_is_seen(plain: str, asynchronous: str) -> None:
    broken = asynchronous.replace("cp.async.wait_group", "//")
    assert broken != asynchronous
    expected = attention(plain, "late", "lockstep")
    assert attention(broken, "late", "lockstep") != expected


@pytest.mark.parametrize(
    ("name", "number", "dtype"),
    [("f32x1", 2, "f4"), ("f16x8", 2, "f2"), ("shared_dyn", 3, "f2")],
)
def test_a_loop_of_copies_waits_once(name: str, number: int, dtype: str) -> None:
    """Of a loop that only fills buffers all copies are in flight together."""
    text = (PEERS / f"inject_async_copy_{name}.mlir").read_text()
    both = compile_both(text, Settings((1, 1), make_async=True))
    assert both.wrong == ()
    assert both.pipelined.ptx.count("cp.async.wait_group") == 1
    expected = copied(both.plain, number, dtype, ("late", "lockstep"))
    assert any(expected)
    for mode in itertools.product(VISIBILITIES, SCHEDULES):
        assert copied(both.pipelined, number, dtype, mode) == expected


def copied(kernel: Compiled, number: int, dtype: str, mode: tuple[str, str]) -> bytes:
    """The bits of the last of so many arrays; the others hold random numbers."""
    random = np.random.default_rng(0)
    arrays = [random.uniform(-1, 1, (32, 128)).astype(dtype) for _ in range(number)]
    arrays[-1][:] = 0
    assert launch(kernel, (1, 1, 1), (32, 1, 1), arrays, mode) == ()
    return arrays[-1].tobytes()
