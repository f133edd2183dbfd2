"""Models that write to their inputs and buffers, as decoders to their caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from torch import nn  # noqa: E402

from alcop_mlir.manifest.kernels import Pointer  # noqa: E402
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions  # noqa: E402
from alcop_mlir.runtime.launch import Program  # noqa: E402
from alcop_mlir.torch import alcop, export  # noqa: E402

# Of torch.export itself, about its own code.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
HEADS, LONGEST, FEATURES = 2, 32, 16  # a row of f16 is a sector of 32 bytes


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path / "cache"))
    torch._dynamo.reset()


class IndexCopy(nn.Module):
    def forward(self, new: Any, places: Any, cache: Any) -> Any:
        cache.index_copy_(2, places, new)
        return cache.float().sum(-1)


class IndexPut(nn.Module):
    def forward(self, new: Any, places: Any, cache: Any) -> Any:
        cache[:, :, places] = new
        return cache.float().sum(-1)


class FirstRows(nn.Module):
    def forward(self, new: Any, places: Any, cache: Any) -> Any:
        cache[:, :, : new.shape[2]] = new
        return cache.float().sum(-1)


class Where(nn.Module):
    def forward(self, new: Any, places: Any, cache: Any) -> Any:
        here = torch.arange(LONGEST) == places
        cache.copy_(torch.where(here[:, None], new, cache))
        return cache.float().sum(-1)


# With the rows that they change.
FORMS = [
    (IndexCopy(), [5]),
    (IndexPut(), [9, 4, -2]),
    (FirstRows(), [0, 1]),
    (Where(), [31]),
]


def arrays(places: list[int]) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    new = torch.randn(1, HEADS, len(places), FEATURES).half()
    cache = torch.randn(1, HEADS, LONGEST, FEATURES).half()
    return new, torch.tensor(places), cache


def stored_bytes(program: Program, given: dict[str, Any]) -> int:
    """What the kernels that take the cache store of f16, in whole sectors."""
    emulation = Emulation(EmulatorOptions(counters=True))
    Program(program.bundle, emulation=emulation)(**given)
    (cache,) = [p for p in program.function.parameters if p.role == "inout"]
    runs = zip(program.function.kernels, emulation.runs, strict=True)
    return 32 * sum(
        line.global_sectors
        for kernel, (_, run) in runs
        if Pointer(cache.name) in kernel.arguments
        for line in (run.counters.lines if run.counters else ())
        if "st.global.b16" in line.text
    )


@pytest.mark.parametrize(("model", "places"), FORMS)
def test_only_rows_that_change_are_written(model: Any, places: list[int]) -> None:
    """By the program's kernels, and in the caller's array."""
    new, where, cache = arrays(places)
    exported = export(model, (new, where, cache))
    (updated,) = [p for p in exported.program.function.parameters if p.role == "inout"]
    assert updated.source_name == "cache"
    given = {"new": new.numpy(), "places": where.numpy(), "cache": cache.numpy()}
    named = [p.source_name for p in exported.program.function.parameters]
    given = {name: one.copy() for name, one in given.items() if name in named}
    stored = stored_bytes(exported.program, given)
    wanted = model(new, where, cache)
    assert np.array_equal(given["cache"], cache.numpy())
    assert stored == len(places) * HEADS * FEATURES * 2
    got = exported.program(**given)  # writes the same again
    assert np.allclose(got, wanted.numpy(), rtol=1e-5)


def test_caches_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With torch.compile: kernels write the tensor itself, and are compiled once.

    An index that it does not have is not written; torch itself has an error for that.
    """
    addresses: list[int] = []
    programs: set[Program] = set()
    call = Program.__call__

    def noted(self: Program, *given: Any, **rest: Any) -> Any:
        programs.add(self)
        addresses.extend(array.ctypes.data for array in given)
        return call(self, *given, **rest)

    monkeypatch.setattr(Program, "__call__", noted)
    new, _, cache = arrays([0])
    wanted = cache.clone()
    run = torch.compile(IndexCopy(), backend=alcop, fullgraph=True)
    with torch.no_grad():
        for place in (7, 8, 31):
            got = run(new, torch.tensor([place]), cache)
            sums = IndexCopy()(new, torch.tensor([place]), wanted)
            assert torch.equal(cache, wanted)
            torch.testing.assert_close(got, sums)
            assert cache.data_ptr() in addresses
            addresses.clear()
        run(new, torch.tensor([LONGEST]), cache)
    assert torch.equal(cache, wanted)
    assert len(programs) == 1


def test_caches_with_gaps() -> None:
    """Of one that programs cannot read in place, a copy is, and is copied back."""
    new, places, _ = arrays([3])
    whole = torch.randn(1, HEADS, LONGEST, 2 * FEATURES).half()
    wanted = whole.clone()
    with torch.no_grad():
        torch.compile(IndexCopy(), backend=alcop)(new, places, whole[..., ::2])
    IndexCopy()(new, places, wanted[..., ::2])
    assert torch.equal(whole, wanted)


class Exchange(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        old = x.clone()
        x.copy_(y)
        y.copy_(old)
        return old + 1


def test_what_is_overwritten_is_read_before() -> None:
    x, y = torch.randn(2, 4, 8)
    mine = x.clone(), y.clone()
    with torch.no_grad():
        got = torch.compile(Exchange(), backend=alcop, fullgraph=True)(*mine)
    assert torch.equal(got, x + 1)
    assert torch.equal(mine[0], y)
    assert torch.equal(mine[1], x)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sum: Any
        self.register_buffer("sum", torch.zeros(8))

    def forward(self, x: Any) -> Any:
        self.sum += x
        return self.sum, x * 2


def test_buffers_are_arguments_that_programs_update() -> None:
    """What is returned is what has no other place; the model's own buffer stays."""
    model = Counter()
    exported = export(model, (torch.ones(8),))
    state, x = dict(exported.weights), np.ones(8, np.float32)
    for count in (1, 2):
        double = exported.program(x=x, **state)
        assert np.array_equal(state["sum"], count * x)
    assert np.array_equal(double, 2 * x)
    assert not model.sum.any()
