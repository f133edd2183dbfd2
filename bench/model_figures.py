"""What a compiled model is: kernels, contractions on tensor cores, workspace, size."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.reference.steps import Einsum
from alcop_mlir.runtime import bundle as bundles
from alcop_mlir.runtime import workspace
from alcop_mlir.runtime.bundle import Bundle


@dataclass(frozen=True)
class Figures:
    """Of a function all sizes of which are known.

    kernels:    that a call launches
    once:       that run once per weights, before the first call
    stored:     different ones among all of them
    contractions: in the program as given, with convolutions; None if not known
    on_tensor_cores, pipelined: kernels that use them, and those with a pipeline: one
                  may compute several contractions, side by side or in a chain
    workspace, stored_bytes: bytes of intermediate arrays of a call, and of the bundle
    reasons:    why a kernel is not pipelined, or computes a contraction some other way
    """

    kernels: int
    once: int
    stored: int
    contractions: int | None
    on_tensor_cores: int
    pipelined: int
    workspace: int
    stored_bytes: int
    reasons: tuple[str, ...]


def figures(bundle: Bundle, remarks: Iterable[str]) -> Figures:
    """Those of the bundle's only function; `remarks` of passes tell reasons."""
    function = bundle.function()
    kernels, once = launched(function), _run_once(bundle)
    on_cores = [one for one in kernels if _uses_tensor_cores(one, bundle)]
    pipelined = [one for one in on_cores if one.pipelines]
    wanted = sum(isinstance(step, Einsum) for step in function.reference)
    return Figures(
        kernels=len(kernels),
        once=len(once),
        stored=len({(one.module, one.name) for one in (*kernels, *once)}),
        contractions=wanted if function.reference else None,
        on_tensor_cores=len(on_cores),
        pipelined=len(pipelined),
        workspace=workspace.plan(function.intermediates, kernels, {}).bytes,
        stored_bytes=stored_bytes(bundle),
        reasons=(
            *filter(_is_fallback, remarks),
            *_not_pipelined(on_cores),
        ),
    )


def _uses_tensor_cores(kernel: Kernel, bundle: Bundle) -> bool:
    _, _, code = bundle.code_of(kernel).ptx.partition(f".entry {kernel.name}(")
    body, _, _ = code.partition(".entry ")
    return "mma.sync" in body


def launched(function: Function) -> list[Kernel]:
    """The kernels of a call, in order; its sizes are known, and so are variants."""
    return [one for launch in function.launches for one in launch.variants[-1].kernels]


def _run_once(bundle: Bundle) -> list[Kernel]:
    """The kernels that prepare weights for the bundle's only function."""
    prepare = bundle.function().prepare
    return [] if prepare is None else launched(bundle.function(prepare.function))


def stored_bytes(bundle: Bundle) -> int:
    """Bytes of the bundle as one file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bundle.zip")
        bundles.save(bundle, path)
        return path.stat().st_size


def _is_fallback(remark: str) -> bool:
    """Whether it may be about a contraction: element-wise ops are no contractions."""
    return "SIMT fallback" in remark and "not a contraction" not in remark


def _not_pipelined(on_cores: Iterable[Kernel]) -> list[str]:
    """Kernels without a pipeline, once each: one step along K leaves none to make."""
    return list(
        dict.fromkeys(
            f"'{one.name}' is not pipelined: {one.schedule or 'its columns are a tile'}"
            for one in on_cores
            if not one.pipelines
        )
    )
