"""Runs of compiled models on the emulator, and how far they are from torch in f64."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from records import ROOT

from alcop_mlir import dtypes
from alcop_mlir.manifest.functions import Function
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program

sys.path.append(str(ROOT / "examples" / "models"))

from small_values import drawn

Array = np.ndarray[Any, Any]
# When copies land, and the order of warps: each of both once at least. In all of them
# races are looked for.
MODES = (
    EmulatorOptions(visibility="late", schedule="lockstep"),
    EmulatorOptions(visibility="early", schedule="ascending"),
    EmulatorOptions(visibility="late", schedule="descending"),
    EmulatorOptions(visibility="early", schedule="random"),
)


@dataclass(frozen=True)
class Values:
    """Arguments of a program, bf16 as its bits, and its results in f64."""

    arguments: Sequence[Array]
    results: Sequence[Array]


def stored_values(file: str, function: Function) -> Values | None:
    """Those of a program in `file`, as small.py writes them; None if there are none."""
    path = Path(file).with_suffix(".npz")
    if not path.is_file():
        return None
    with np.load(path) as found:
        results = [one.astype(np.float64) for one in found.values()]
    parameters = function.parameters[: len(function.parameters) - len(results)]
    arguments = []
    for number, one in enumerate(parameters):
        shape = [int(size) for size in one.shape]
        kind = np.float32 if one.dtype == "bf16" else dtypes.NUMPY_DTYPES[one.dtype]
        values = drawn(number, shape, np.dtype(kind).name)
        is_bits = one.dtype == "bf16"
        arguments.append(dtypes.encode(values, one.dtype) if is_bits else values)
    return Values(arguments, results)


def worst_error(bundle: Bundle, values: Values) -> float:
    """The largest error of all modes, relative to the largest of its array.

    EmulationError where a kernel has a race, or accesses what it must not.
    """
    return max(_error(bundle, values, mode) for mode in MODES)


def _error(bundle: Bundle, values: Values, mode: EmulatorOptions) -> float:
    program = Program(bundle, None, "emulator", Emulation(mode))
    made = program(*values.arguments)
    every = made if isinstance(made, tuple) else (made,)
    kinds = [one.dtype for one in bundle.function().parameters[-len(every) :]]
    errors = []
    for one, wanted, kind in zip(every, values.results, kinds, strict=True):
        away = np.abs(dtypes.decode(np.asarray(one), kind) - wanted).max()
        errors.append(float(away / np.abs(wanted).max()))
    return max(errors)
