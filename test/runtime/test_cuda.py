"""Running programs on CUDA: the calls of CuPy.

These tests have no GPU, and no CuPy: they look at a stand-in for it. The tests marked
`gpu` show that kernels run on a GPU.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bundles import CUBIN, PTX, arrays, bundle, matmul
from fake_cupy import DlpackOnly, FakeCupy, GpuArray, InterfaceOnly
from fake_emulator import FakeEmulator

from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime import launch
from alcop_mlir.runtime.launch import Program
from alcop_mlir.target import target_names


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    return use_cupy(monkeypatch, FakeCupy())


def use_cupy(monkeypatch: pytest.MonkeyPatch, fake: FakeCupy) -> FakeCupy:
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake


def test_gpu_arrays_go_to_cuda(cupy: FakeCupy, emulator: FakeEmulator) -> None:
    """Pointers as 64-bit integers, dynamic shared memory, the GPU of the arrays."""
    given = [GpuArray(array, number=1) for array in arrays()]
    Program(bundle())(*given)
    (call,) = cupy.launches
    assert (call.name, call.grid, call.block) == ("matmul", (2, 1, 1), (128, 1, 1))
    assert call.shared_mem == 1024
    assert call.arguments == tuple(array.data.ptr for array in given)
    assert all(isinstance(value, np.unsignedinteger) for value in call.arguments)
    assert [entered.id for entered in call.inside] == [1]
    assert emulator.calls == []
    assert cupy.stack == []


@pytest.mark.parametrize("kind", [GpuArray, InterfaceOnly, DlpackOnly])
def test_other_libraries_arrays_are_taken(cupy: FakeCupy, kind: type) -> None:
    """By `__cuda_array_interface__` or DLPack, without a copy."""
    plain = [GpuArray(array) for array in arrays()]
    given = plain if kind is GpuArray else [kind(array) for array in plain]
    Program(bundle())(*given)
    assert cupy.launches[0].arguments == tuple(array.data.ptr for array in plain)


def test_sizes_are_64_bit_integers_on_cuda(cupy: FakeCupy) -> None:
    """As the kernel ABI says."""
    Program(bundle(matmul("M")))(*[GpuArray(array) for array in arrays(m=96)])
    size = cupy.launches[0].arguments[3]
    assert isinstance(size, np.signedinteger)
    assert (size, size.itemsize) == (96, 8)


@pytest.mark.parametrize(
    ("capability", "cubin", "suffix", "content"),
    [
        ("80", CUBIN, ".cubin", CUBIN),
        ("80", None, ".ptx", PTX.encode()),
        ("86", CUBIN, ".ptx", PTX.encode()),
        ("90", CUBIN, ".ptx", PTX.encode()),
    ],
)
def test_the_cubin_is_for_its_own_gpu(
    monkeypatch: pytest.MonkeyPatch,
    capability: str,
    cubin: bytes | None,
    suffix: str,
    content: bytes,
) -> None:
    """Other, newer GPUs get the PTX, which the driver assembles."""
    cupy = use_cupy(monkeypatch, FakeCupy(capability))
    Program(bundle(cubin=cubin))(*[GpuArray(array) for array in arrays()])
    assert cupy.contents == [content]
    assert cupy.loaded[0].suffix == suffix
    assert not cupy.loaded[0].exists()


def test_an_older_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """PTX for sm_90 does not run on an sm_80."""
    cupy = use_cupy(monkeypatch, FakeCupy("80"))
    with pytest.raises(
        LaunchError, match="is for sm_90, this GPU is an sm_80: compile"
    ):
        Program(bundle(target="sm_90"))(*[GpuArray(array) for array in arrays()])
    assert cupy.launches == []


@pytest.mark.parametrize(("size", "asked"), [(49152, []), (49153, [49153])])
def test_more_than_48_kilobytes_shared_are_asked_for(
    cupy: FakeCupy, size: int, asked: list[int]
) -> None:
    """Once, when the kernel is loaded; a second call loads nothing."""
    program = Program(bundle(matmul(shared_bytes=size)))
    for _ in range(2):
        program(*[GpuArray(array) for array in arrays()])
    assert cupy.limits == asked
    assert len(cupy.loaded) == 1
    assert [call.shared_mem for call in cupy.launches] == [size, size]


def test_too_much_shared_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle for an A100 on a smaller GPU."""
    use_cupy(monkeypatch, FakeCupy("86", shared_limit=101376))
    program = Program(bundle(matmul(shared_bytes=150000)))
    with pytest.raises(
        LaunchError, match=r"needs 150000 bytes of shared .* has 101376"
    ):
        program(*[GpuArray(array) for array in arrays()])


@pytest.mark.parametrize(
    "stream",
    [
        11,
        SimpleNamespace(cuda_stream=11),
        SimpleNamespace(__cuda_stream__=lambda: (0, 11)),
    ],
)
def test_a_stream_may_be_given(cupy: FakeCupy, stream: Any) -> None:
    """An address, PyTorch's, or anything with the CUDA stream protocol."""
    Program(bundle())(*[GpuArray(array) for array in arrays()], stream=stream)
    device, entered = cupy.launches[0].inside
    assert (device.id, entered.ptr) == (0, 11)


def test_a_stream_of_cupy_is_used_itself(cupy: FakeCupy) -> None:
    """No second object for the same stream."""
    stream = cupy.cuda.Stream()
    Program(bundle())(*[GpuArray(array) for array in arrays()], stream=stream)
    assert cupy.launches[0].inside[1] is stream


def test_streams_are_wrapped_for_older_cupy_too(cupy: FakeCupy) -> None:
    """Before CuPy 14 there is no `Stream.from_external`."""
    cupy.cuda.ExternalStream = cupy.cuda.Stream
    del cupy.cuda.Stream.from_external
    Program(bundle())(*[GpuArray(array) for array in arrays()], stream=13)
    assert cupy.launches[0].inside[1].ptr == 13


@pytest.mark.parametrize("stream", ["0x10", 1.5, True, SimpleNamespace(cuda_stream="")])
def test_what_is_no_stream_is_refused(cupy: FakeCupy, stream: Any) -> None:
    """Before anything is launched."""
    with pytest.raises(LaunchError, match=r"stream is a .*, expected a CuPy stream"):
        Program(bundle())(*[GpuArray(array) for array in arrays()], stream=stream)
    assert cupy.launches == []


def test_a_stream_for_the_emulator_is_refused(emulator: FakeEmulator) -> None:
    """It would be ignored silently otherwise."""
    with pytest.raises(
        LaunchError, match="a stream was given, but the arrays are in m"
    ):
        Program(bundle())(*arrays(), stream=1)
    assert emulator.calls == []


def test_arrays_must_be_in_one_place(cupy: FakeCupy, emulator: FakeEmulator) -> None:
    """GPU and main memory mixed, two GPUs, or not where the program runs."""
    host, gpu = arrays(), [GpuArray(array) for array in arrays()]
    away = GpuArray(host[1], number=1)
    for given, device, message in (
        (
            [gpu[0], host[1], gpu[2]],
            "auto",
            r"2 \('B'\) is in main memory, expected an",
        ),
        (
            [host[0], gpu[1], gpu[2]],
            "auto",
            r"1 \('A'\) is in main memory, expected an",
        ),
        ([gpu[0], away, gpu[2]], "auto", r"2 \('B'\) is on GPU 1, argument 1 on GPU 0"),
        (host, "cuda", r"\('A'\) is in main memory, expected an array in GPU memory"),
        (
            gpu,
            "emulator",
            r"\('A'\) is in GPU memory, expected an array in main memory",
        ),
    ):
        with pytest.raises(LaunchError, match=message):
            Program(bundle(), device=device)(*given)
    assert (cupy.launches, emulator.calls) == ([], [])


def test_gpu_arrays_are_checked_like_others(cupy: FakeCupy) -> None:
    """Shape, and whether the interface says read-only."""
    given = [GpuArray(array) for array in arrays()]
    given[2].read_only = True
    with pytest.raises(LaunchError, match=r"\('C'\) is read-only"):
        Program(bundle())(*given)
    with pytest.raises(LaunchError, match="has shape 64x48, expected 48x32"):
        Program(bundle())(given[0], given[0], given[2])
    assert cupy.launches == []


def test_errors_of_cuda_are_launch_errors(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a traceback of CuPy's."""

    def fail(*, path: str) -> None:
        raise cupy.cuda.driver.CUDADriverError("CUDA_ERROR_INVALID_PTX")

    monkeypatch.setattr(cupy, "RawModule", fail)
    with pytest.raises(LaunchError, match="CUDA: CUDA_ERROR_INVALID_PTX"):
        Program(bundle())(*[GpuArray(array) for array in arrays()])


# --- which device there is


def test_without_cupy_there_is_only_the_emulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`auto` says so, `cuda` is an error that says what to install."""
    monkeypatch.setitem(sys.modules, "cupy", None)  # import raises
    assert launch.pick_device("auto") == "emulator"
    assert launch.pick_device("emulator") == "emulator"
    with pytest.raises(
        LaunchError, match=r"no CUDA device: .* the emulator needs none"
    ):
        launch.pick_device("cuda")
    with pytest.raises(
        LaunchError, match="arrays in GPU memory need CuPy: pip install"
    ):
        Program(bundle())(*[GpuArray(array) for array in arrays()])


def test_auto_is_cuda_where_there_is_a_gpu(cupy: FakeCupy) -> None:
    """And what is compiled then is for that GPU."""
    assert launch.pick_device("auto") == launch.pick_device("cuda") == "cuda"
    assert launch.gpu_target().name == "sm_80"


@pytest.mark.parametrize("capability", [80, 81, *range(86, 91), 100, 121, 999])
def test_the_target_is_the_newest_that_the_gpu_runs(
    monkeypatch: pytest.MonkeyPatch, capability: int
) -> None:
    """PTX for an older GPU runs on a newer one, but for that of one architecture."""
    names = [name for name in target_names() if name.removeprefix("sm_").isdigit()]
    known = [int(name.removeprefix("sm_")) for name in names]
    newest = max(number for number in known if number <= capability)
    use_cupy(monkeypatch, FakeCupy(str(capability)))
    assert launch.gpu_target().name == f"sm_{newest}"


@pytest.mark.parametrize(
    ("capability", "advice"),
    [("80", "sm_80"), ("89", "sm_89"), ("100", "sm_100"), ("121", "sm_120")],
)
def test_code_for_one_architecture_runs_on_no_other(
    monkeypatch: pytest.MonkeyPatch, capability: str, advice: str
) -> None:
    """Its feature set is not forward compatible."""
    use_cupy(monkeypatch, FakeCupy(capability))
    with pytest.raises(
        LaunchError,
        match=f"is for sm_90a, this GPU is an sm_{capability}: .* --target {advice}",
    ):
        Program(bundle(target="sm_90a"))(*[GpuArray(array) for array in arrays()])


def test_code_for_one_architecture_runs_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Hopper, and code for sm_90 on what comes after it."""
    for target, capability in (("sm_90a", "90"), ("sm_90", "90"), ("sm_90", "100")):
        cupy = FakeCupy(capability)
        use_cupy(monkeypatch, cupy)
        Program(bundle(target=target))(*[GpuArray(array) for array in arrays()])
        assert cupy.launches


def test_a_gpu_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no cp.async before sm_80."""
    use_cupy(monkeypatch, FakeCupy("75"))
    with pytest.raises(LaunchError, match="an sm_75, expected sm_80 or newer"):
        launch.gpu_target()


def test_arrays_travel_to_the_gpu_and_back(cupy: FakeCupy) -> None:
    """For alcop-run, which makes them in NumPy."""
    before = {"A": arrays()[0]}
    there = launch.to_device(before, "cuda")
    assert isinstance(there["A"], GpuArray)
    assert np.array_equal(launch.to_host(there)["A"], before["A"])
    copied = launch.to_device(before, "emulator")["A"]
    assert not np.shares_memory(copied, before["A"])
