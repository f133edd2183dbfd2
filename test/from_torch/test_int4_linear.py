"""A Linear with weights of four bits, two in a byte."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from int4_linear import GROUP, Int4Linear  # noqa: E402

from alcop_mlir.torch import export  # noqa: E402

# Of torch.export itself, about its own code.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


def test_bytes_stay_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel reads the bytes; once per weights, scales are transposed alone."""
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path))
    torch.manual_seed(0)
    linear = torch.nn.Linear(128, 32, bias=False)
    model, x = Int4Linear(linear).eval(), torch.randn(8, 128, dtype=torch.float16)
    assert model.packed.shape == (32, 64)
    assert model.packed.dtype == torch.int8
    exported = export(model, (x,))
    program = exported.program
    (kernel,) = program.function.kernels
    assert [one.stages > 1 for one in kernel.pipelines if "xi8" in one.buffer]
    assert program.function.prepare is not None
    (scales,) = program.function.prepare.arrays
    assert (scales.shape, scales.dtype) == ((128 // GROUP, 32), "f16")
    got = torch.from_numpy(program(x=x.numpy(), **exported.weights))
    with torch.no_grad():
        wanted = model(x.double())
        rounded = linear(x.float())
    assert (got - wanted).abs().max() < 2e-3 * wanted.abs().max()
    assert (wanted - rounded).abs().max() < 0.2 * rounded.abs().max()
