"""What a bundle says about its kernels: plain data, to and from JSON.

Everything that is needed to launch and to check, and nothing that is executed: grids
are ceil-divisions of named sizes by constants, the reference is a list of einsums.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule

SCHEMA = 1
DTYPES = ("f16", "bf16", "f32", "f64", "i8", "i32")  # MLIR's names; i8 is signed
PRECISIONS = ("tf32",)
ROLES = ("in", "out", "inout")
LEVELS = ("shared", "register")
Size = int | str  # a number, or the name of a size known when arrays are given
Dim3 = tuple[int, int, int]  # along x, y, z


@dataclass(frozen=True)
class Parameter:
    """One array argument; `shape` in elements, C order.

    strides:       in elements; None where rows follow each other without gaps
    row_alignment: bytes that rows must be a multiple of
    """

    name: str
    dtype: str
    shape: tuple[Size, ...]
    role: str
    strides: tuple[int, ...] | None = None
    row_alignment: int = 1


@dataclass(frozen=True)
class CeilDiv:
    """The size called `size`, divided by `divisor` and rounded up."""

    size: str
    divisor: int


@dataclass(frozen=True)
class Pipeline:
    """One pipelined buffer: how many slots, at which level of the memory hierarchy."""

    buffer: str
    level: str
    stages: int


@dataclass(frozen=True)
class Kernel:
    """One launch of a kernel.

    arguments: names of arrays, then sizes, by name or as numbers, in the order of the
        kernel's parameters
    grid, block: blocks, threads, along x, y, z
    shared_bytes: dynamic shared memory; static_shared_bytes, registers (per thread) and
        spill_bytes as ptxas reports them, None where it was not there
    """

    name: str
    arguments: tuple[Size, ...]
    grid: tuple[int | CeilDiv, int | CeilDiv, int | CeilDiv]
    block: Dim3
    shared_bytes: int
    schedule: Schedule | None = None
    pipelines: tuple[Pipeline, ...] = ()
    registers: int | None = None
    spill_bytes: int | None = None
    static_shared_bytes: int | None = None


@dataclass(frozen=True)
class Contraction:
    """`out = einsum(maps, lhs, rhs)`, plus the array called `init` where there is one.

    The names are of parameters, or of an earlier contraction's `out`. `precision` is
    what the kernel rounds lhs and rhs to before it multiplies, if it does.
    """

    lhs: str
    rhs: str
    out: str
    maps: str
    init: str | None
    precision: str | None = None


@dataclass(frozen=True)
class Function:
    """One callable of a bundle: launches its kernels in order.

    reference: what it computes, for checking; empty where that is not known
    """

    name: str
    parameters: tuple[Parameter, ...]
    kernels: tuple[Kernel, ...]
    reference: tuple[Contraction, ...] = ()


def with_sizes(function: Function, sizes: Mapping[str, int]) -> Function:
    """`function` for arrays of these sizes; those not named stay as they are."""
    parameters = tuple(
        replace(
            parameter,
            shape=tuple(
                sizes.get(size, size) if isinstance(size, str) else size
                for size in parameter.shape
            ),
        )
        for parameter in function.parameters
    )
    return replace(function, parameters=parameters)


def function_to_json(function: Function) -> dict[str, Any]:
    """`function` as JSON values."""
    return {
        "name": function.name,
        "parameters": [
            _parameter_to_json(parameter) for parameter in function.parameters
        ],
        "kernels": [_kernel_to_json(kernel) for kernel in function.kernels],
        "reference": [
            {"op": "contraction", **vars(contraction)}
            for contraction in function.reference
        ],
    }


def function_from_json(value: Any) -> Function:
    """The checked function; ConfigError says what is wrong with it."""
    fields = Fields(value, "function")
    parameters = tuple(_parameter(item) for item in fields.take("parameters", list))
    known = {p.name for p in parameters}
    if len(known) < len(parameters):
        raise ConfigError("function names a parameter twice")
    sizes = {s for p in parameters for s in p.shape if isinstance(s, str)}
    function = Function(
        name=fields.take("name", str),
        parameters=parameters,
        kernels=tuple(
            _kernel(item, known, sizes) for item in fields.take("kernels", list)
        ),
        reference=tuple(_contraction(item) for item in fields.take("reference", list)),
    )
    _check_reference(function.reference, known)
    return function


class Fields:
    """A JSON object whose members are taken by name and type."""

    def __init__(self, value: Any, what: str):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{what} is {_short(value)}, expected an object")
        self._value, self._what = value, what

    def take(self, name: str, kind: type) -> Any:
        """Member `name`; ConfigError where it is missing or no `kind`."""
        if name not in self._value:
            raise ConfigError(f"{self._what} has no '{name}'")
        value = self._value[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ConfigError(
                f"{self._what}: '{name}' is {_short(value)}, expected {kind.__name__}"
            )
        return value

    def count(self, name: str) -> int:
        """Member `name`, an integer of 0 or more."""
        value = self.take(name, int)
        if value < 0:
            raise ConfigError(f"{self._what}: '{name}' is {value}, expected 0 or more")
        return value

    def optional_count(self, name: str) -> int | None:
        """As `count`, or None where the member is null or missing."""
        return None if self._value.get(name) is None else self.count(name)

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str:
        """Member `name`, one of the texts `allowed`."""
        value = self.take(name, str)
        if value not in allowed:
            raise ConfigError(
                f"{self._what}: '{name}' is '{value}', expected one of "
                f"{', '.join(allowed)}"
            )
        return value

    def matching(self, name: str, pattern: str) -> str:
        """Member `name`, a text of the form `pattern`."""
        value = self.take(name, str)
        if re.fullmatch(pattern, value) is None:
            raise ConfigError(f"{self._what}: '{name}' is {_short(value)}")
        return value


def _parameter_to_json(parameter: Parameter) -> dict[str, Any]:
    """What is as usual is left out."""
    value: dict[str, Any] = {
        "name": parameter.name,
        "dtype": parameter.dtype,
        "shape": list(parameter.shape),
        "role": parameter.role,
    }
    if parameter.strides is not None:
        value["strides"] = list(parameter.strides)
    if parameter.row_alignment != 1:
        value["row_alignment"] = parameter.row_alignment
    return value


def _kernel_to_json(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "arguments": list(kernel.arguments),
        "grid": [
            {"ceildiv": [part.size, part.divisor]}
            if isinstance(part, CeilDiv)
            else part
            for part in kernel.grid
        ],
        "block": list(kernel.block),
        "shared_bytes": kernel.shared_bytes,
        "schedule": kernel.schedule.to_dict() if kernel.schedule else None,
        "pipelines": [dict(vars(pipeline)) for pipeline in kernel.pipelines],
        "registers": kernel.registers,
        "spill_bytes": kernel.spill_bytes,
        "static_shared_bytes": kernel.static_shared_bytes,
    }


def _parameter(value: Any) -> Parameter:
    fields = Fields(value, "parameter")
    shape = tuple(fields.take("shape", list))
    if not all(isinstance(s, str) or _is_count(s) for s in shape):
        raise ConfigError(f"parameter: 'shape' is {_short(list(shape))}")
    strides = None
    if value.get("strides") is not None:
        strides = tuple(fields.take("strides", list))
        if len(strides) != len(shape) or not all(map(_is_count, strides)):
            raise ConfigError(f"parameter: 'strides' is {_short(list(strides))}")
    alignment = fields.optional_count("row_alignment")
    return Parameter(
        name=fields.take("name", str),
        dtype=fields.one_of("dtype", DTYPES),
        shape=shape,
        role=fields.one_of("role", ROLES),
        strides=strides,
        row_alignment=1 if alignment is None else max(1, alignment),
    )


def _kernel(value: Any, arrays: set[str], sizes: set[str]) -> Kernel:
    fields = Fields(value, "kernel")
    arguments = tuple(fields.take("arguments", list))
    known = arrays | sizes
    unknown = [
        a
        for a in arguments
        if not _is_count(a) and not (isinstance(a, str) and a in known)
    ]
    if unknown:
        raise ConfigError(f"kernel: unknown argument {_short(unknown[0])}")
    block = fields.take("block", list)
    if len(block) != 3 or not all(_is_positive(part) for part in block):
        raise ConfigError(f"kernel: 'block' is {_short(block)}")
    schedule = None
    if value.get("schedule") is not None:
        schedule = Schedule.from_dict(fields.take("schedule", dict))
    return Kernel(
        # The name is also that of a file, and of a symbol in the PTX.
        name=fields.matching("name", r"[A-Za-z_$][\w$]*"),
        arguments=arguments,
        grid=_grid(fields.take("grid", list), sizes),
        block=(block[0], block[1], block[2]),
        shared_bytes=fields.count("shared_bytes"),
        schedule=schedule,
        pipelines=tuple(_pipeline(p) for p in fields.take("pipelines", list)),
        registers=fields.optional_count("registers"),
        spill_bytes=fields.optional_count("spill_bytes"),
        static_shared_bytes=fields.optional_count("static_shared_bytes"),
    )


def _grid(parts: list[Any], sizes: set[str]) -> Any:
    grid: list[int | CeilDiv] = []
    for part in parts:
        match part:
            case {"ceildiv": [str(size), int(divisor)]} if (
                size in sizes and _is_positive(divisor) and len(part) == 1
            ):
                grid.append(CeilDiv(size, divisor))
            case int() if _is_count(part):
                grid.append(part)
            case _:
                raise ConfigError(f"kernel: 'grid' has {_short(part)}")
    if len(grid) != 3:
        raise ConfigError(f"kernel: 'grid' has {len(grid)} parts, expected 3")
    return tuple(grid)


def _pipeline(value: Any) -> Pipeline:
    fields = Fields(value, "pipeline")
    return Pipeline(
        buffer=fields.take("buffer", str),
        level=fields.one_of("level", LEVELS),
        stages=fields.count("stages"),
    )


def _contraction(value: Any) -> Contraction:
    fields = Fields(value, "reference")
    fields.one_of("op", ("contraction",))
    init = None if value.get("init") is None else fields.take("init", str)
    rounds = value.get("precision") is not None
    return Contraction(
        lhs=fields.take("lhs", str),
        rhs=fields.take("rhs", str),
        out=fields.take("out", str),
        maps=fields.matching("maps", r"[A-Za-z]*,[A-Za-z]*->[A-Za-z]*"),
        init=init,
        precision=fields.one_of("precision", PRECISIONS) if rounds else None,
    )


def _check_reference(reference: tuple[Contraction, ...], arrays: set[str]) -> None:
    known = set(arrays)
    for step in reference:
        for name in (step.lhs, step.rhs, step.init):
            if name is not None and name not in known:
                raise ConfigError(f"reference: unknown array '{name}'")
        known.add(step.out)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
