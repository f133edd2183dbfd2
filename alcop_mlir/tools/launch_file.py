"""The launch description of a bare PTX kernel: a small JSON file.

    {"kernel": "scale", "grid": [4], "block": [128], "dynamic_shared": 0,
     "arguments": [{"array": {"dtype": "f32", "shape": [512], "init": "random"}},
                   {"value": 512, "dtype": "i32"}]}

Sizes along y and z may be left out; see `docs/emulator.md`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.errors import ConfigError

Dim3 = tuple[int, int, int]
Array = np.ndarray[Any, Any]

DTYPES: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(kind) for name, kind in dtypes.NUMPY_DTYPES.items()},
    **{f"u{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
}
INITS = ("random", "zero", "nan", "arange")
# The emulator holds a copy of each array; beyond this a mistake is more likely.
MAX_BYTES = 1 << 32


@dataclass(frozen=True)
class ArrayArgument:
    """A buffer, and what it holds before the launch."""

    dtype: str
    shape: tuple[int, ...]
    init: str

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize

    def make(self, generator: np.random.Generator) -> Array:
        """The array: random floats are in [-1, 1], random integers of any value."""
        dtype, count = DTYPES[self.dtype], math.prod(self.shape)
        if self.init == "random" and self.dtype[0] in "iu":
            flat = np.frombuffer(generator.bytes(self.bytes), dtype).copy()
            return flat.reshape(self.shape)
        if self.init == "arange":
            values = np.arange(count)
        elif self.init == "random":
            values = generator.random(count, np.float32) * 2 - 1
        else:
            values = np.full(count, np.nan if self.init == "nan" else 0)
        return _converted(values, self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class ValueArgument:
    """A number; without a dtype it takes the type of the parameter."""

    value: float
    dtype: str | None

    def make(self) -> bytes | int | float:
        """The argument of `emulate`: bytes where the dtype is known."""
        if self.dtype is None:
            return self.value
        return _converted(np.array(self.value), self.dtype).tobytes()


Argument = ArrayArgument | ValueArgument


@dataclass(frozen=True)
class LaunchFile:
    """How to launch a kernel (None: the only one of the file)."""

    kernel: str | None
    grid: Dim3
    block: Dim3
    dynamic_shared: int
    arguments: tuple[Argument, ...]


def read_launch(path: str) -> LaunchFile:
    """Read it; ConfigError names the file and the member for every mistake."""
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"'{path}' is no UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"'{path}' is no JSON: {error}") from None
    try:
        return _launch(given)
    except ConfigError as error:
        raise ConfigError(f"'{path}': {error}") from None


def _launch(given: Any) -> LaunchFile:
    fields = _object(
        given,
        "the launch",
        needed=("grid", "block", "arguments"),
        others=("kernel", "dynamic_shared"),
    )
    kernel = fields.get("kernel")
    if not (kernel is None or isinstance(kernel, str)):
        raise ConfigError(f"kernel: expected a name or null, got {_show(kernel)}")
    arguments = fields["arguments"]
    if not isinstance(arguments, list):
        raise ConfigError(f"arguments: expected a list, got {_show(arguments)}")
    made = tuple(_argument(a, f"arguments[{n}]") for n, a in enumerate(arguments))
    total = sum(a.bytes for a in made if isinstance(a, ArrayArgument))
    if total > MAX_BYTES:
        raise ConfigError(
            f"arguments: arrays of {total} bytes, expected {MAX_BYTES} at most"
        )
    return LaunchFile(
        kernel=kernel,
        grid=_dim3(fields["grid"], "grid"),
        block=_dim3(fields["block"], "block"),
        dynamic_shared=_whole(fields.get("dynamic_shared", 0), "dynamic_shared", 0),
        arguments=made,
    )


def _argument(given: Any, where: str) -> Argument:
    if isinstance(given, dict) and "value" in given:
        return _value(given, where)
    if isinstance(given, dict) and "array" in given:
        _object(given, where, needed=("array",))
        return _array(given["array"], f"{where}.array")
    raise ConfigError(
        f'{where}: expected an object with "array" or "value", got {_show(given)}'
    )


def _array(given: Any, where: str) -> ArrayArgument:
    fields = _object(given, where, needed=("dtype", "shape"), others=("init",))
    dtype = _one_of(fields["dtype"], DTYPES, f"{where}.dtype")
    init = _one_of(fields.get("init", "random"), INITS, f"{where}.init")
    if init == "nan" and dtype[0] in "iu":
        raise ConfigError(f"{where}.init: {dtype} has no nan")
    shape = fields["shape"]
    if not isinstance(shape, list) or not shape:
        raise ConfigError(
            f"{where}.shape: expected a list of sizes, got {_show(shape)}"
        )
    sizes = tuple(_whole(n, f"{where}.shape[{i}]", 1) for i, n in enumerate(shape))
    return ArrayArgument(dtype, sizes, init)


def _value(given: dict[str, Any], where: str) -> ValueArgument:
    fields = _object(given, where, needed=("value",), others=("dtype",))
    value, dtype = fields["value"], fields.get("dtype")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"{where}.value: expected a number, got {_show(value)}")
    if isinstance(value, int) and abs(value) >= 1 << 64:
        raise ConfigError(f"{where}.value: no parameter holds {_show(value)}")
    if dtype is None:
        return ValueArgument(value, None)
    dtype = _one_of(dtype, DTYPES, f"{where}.dtype")
    if dtype[0] in "iu":
        limits = np.iinfo(DTYPES[dtype])
        if not (isinstance(value, int) and limits.min <= value <= limits.max):
            raise ConfigError(
                f"{where}.value: expected an {dtype}, whole and from {limits.min} to "
                f"{limits.max}, got {_show(value)}"
            )
    return ValueArgument(value, dtype)


def _converted(values: Array, dtype: str) -> Array:
    """`values` as `dtype`, of which arrays may hold the bits."""
    with np.errstate(over="ignore"):
        if dtype in dtypes.NUMPY_DTYPES:
            return dtypes.encode(values, dtype)
        return values.astype(DTYPES[dtype])


def _object(
    given: Any, where: str, needed: Sequence[str], others: Sequence[str] = ()
) -> dict[str, Any]:
    """`given`, if it is an object with just these fields."""
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: expected an object, got {_show(given)}")
    for name in needed:
        if name not in given:
            raise ConfigError(f'{where}: "{name}" is missing')
    known = (*needed, *others)
    for name in given:
        if name not in known:
            raise ConfigError(f'{where}: unknown "{name}", expected {", ".join(known)}')
    return given


def _dim3(given: Any, where: str) -> Dim3:
    if not isinstance(given, list) or not 1 <= len(given) <= 3:
        raise ConfigError(f"{where}: expected one to three sizes, got {_show(given)}")
    sizes = [_whole(n, f"{where}[{i}]", 1) for i, n in enumerate(given)]
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _whole(given: Any, where: str, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise ConfigError(
            f"{where}: expected a whole number of {least} or more, got {_show(given)}"
        )
    return given


def _one_of(given: Any, known: Sequence[str] | dict[str, Any], where: str) -> str:
    if not isinstance(given, str) or given not in known:
        raise ConfigError(
            f"{where}: expected one of {', '.join(known)}, got {_show(given)}"
        )
    return given


def _show(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
