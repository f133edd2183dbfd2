"""The functions of a bundle as JSON, which may be damaged or hostile when it is read.

A function that is read without an error can be launched: arrays and sizes that are
named are there, numbers are in range.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.errors import ConfigError
from alcop_mlir.fields import Fields, is_count, short
from alcop_mlir.polynomials import Polynomial, collected
from alcop_mlir.reference import steps
from alcop_mlir.runtime.manifest import (
    DTYPES,
    LEVELS,
    ROLES,
    AtMost,
    CeilDiv,
    Function,
    Intermediate,
    Kernel,
    Parameter,
    PipelinedBuffer,
    named_sizes,
)
from alcop_mlir.schedule import Schedule


def function_to_json(function: Function) -> dict[str, Any]:
    """`function` as JSON values; defaults are left out."""
    value = {
        "name": function.name,
        "parameters": [
            _parameter_to_json(parameter) for parameter in function.parameters
        ],
        "kernels": [_kernel_to_json(kernel) for kernel in function.kernels],
        "reference": [steps.to_json(step) for step in function.reference],
    }
    if function.intermediates:
        value["intermediates"] = [
            {"name": one.name, "dtype": one.dtype, "shape": list(one.shape)}
            for one in function.intermediates
        ]
    if function.checks:
        value["at_most"] = [
            [_polynomial_to_json(one.least), _polynomial_to_json(one.most)]
            for one in function.checks
        ]
    return value


def function_from_json(value: Any) -> Function:
    """The checked function; ConfigError says what is wrong in it."""
    fields = Fields(value, "function")
    parameters = tuple(_parameter(item) for item in fields.take("parameters", list))
    sizes = named_sizes(parameters)
    handed_on: tuple[Intermediate, ...] = ()
    if value.get("intermediates") is not None:
        items = fields.take("intermediates", list)
        handed_on = tuple(_intermediate(item, sizes) for item in items)
    checks: list[AtMost] = []
    if value.get("at_most") is not None:
        checks = [_at_most(item, sizes) for item in fields.take("at_most", list)]
    given = {p.name for p in parameters}
    known = given | {one.name for one in handed_on}
    if len(known) < len(parameters) + len(handed_on):
        raise ConfigError("function names an array twice")
    return Function(
        name=fields.take("name", str),
        parameters=parameters,
        kernels=tuple(
            _kernel(item, known, sizes) for item in fields.take("kernels", list)
        ),
        reference=steps.from_json(fields.take("reference", list), given, sizes),
        intermediates=handed_on,
        checks=tuple(checks),
    )


def _parameter_to_json(parameter: Parameter) -> dict[str, Any]:
    """`parameter` as JSON values; defaults are left out."""
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
    """`kernel` as JSON values; defaults are left out."""
    value = {
        "name": kernel.name,
        "arguments": list(kernel.arguments),
        "grid": [
            _ceildiv_to_json(part) if isinstance(part, CeilDiv) else part
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
    return value | ({"simt": True} if kernel.simt else {})


def _ceildiv_to_json(part: CeilDiv) -> dict[str, Any]:
    """`{"ceildiv": ["M", 128]}`, or with a list of sizes instead of the name."""
    one_name = len(part.sizes) == 1 and isinstance(part.sizes[0], str)
    sizes = part.sizes[0] if one_name else list(part.sizes)
    return {"ceildiv": [sizes, part.divisor]}


def _intermediate(value: Any, sizes: set[str]) -> Intermediate:
    fields = Fields(value, "intermediate")
    shape = tuple(fields.take("shape", list))
    if not all(is_count(s) or (isinstance(s, str) and s in sizes) for s in shape):
        raise ConfigError(f"intermediate: 'shape' is {short(list(shape))}")
    dtype = fields.matching("dtype", r"(bf|f|i)[1-9]\d{0,2}|index")
    return Intermediate(fields.take("name", str), dtype, shape)


def _polynomial_to_json(polynomial: Polynomial) -> list[Any]:
    """`[[8, ["M", "N"]], [2, []]]` for 8 * M * N + 2."""
    return [[number, list(factors)] for number, factors in polynomial.terms]


def _at_most(value: Any, sizes: set[str]) -> AtMost:
    match value:
        case [list(least), list(most)]:
            return AtMost(_polynomial(least, sizes), _polynomial(most, sizes))
    raise ConfigError(f"function: 'at_most' has {short(value)}")


def _polynomial(terms: list[Any], sizes: set[str]) -> Polynomial:
    for term in terms:
        match term:
            case [int(), list(factors)] if all(
                isinstance(factor, str) and factor in sizes for factor in factors
            ):
                continue
        raise ConfigError(f"function: 'at_most' has {short(term)}")
    return collected((number, tuple(factors)) for number, factors in terms)


def _parameter(value: Any) -> Parameter:
    fields = Fields(value, "parameter")
    shape = tuple(fields.take("shape", list))
    if not all(map(_is_size, shape)):
        raise ConfigError(f"parameter: 'shape' is {short(list(shape))}")
    strides = None
    if value.get("strides") is not None:
        strides = tuple(fields.take("strides", list))
        if len(strides) != len(shape) or not all(map(_is_size, strides)):
            raise ConfigError(f"parameter: 'strides' is {short(list(strides))}")
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
        if not is_count(a) and not (isinstance(a, str) and a in known)
    ]
    if unknown:
        raise ConfigError(f"kernel: unknown argument {short(unknown[0])}")
    block = fields.take("block", list)
    if len(block) != 3 or not all(_is_positive(part) for part in block):
        raise ConfigError(f"kernel: 'block' is {short(block)}")
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
        simt=value.get("simt") is True,
    )


def _grid(parts: list[Any], sizes: set[str]) -> Any:
    grid: list[int | CeilDiv] = []
    for part in parts:
        match part:
            case {"ceildiv": [str() | list() as given, int(divisor)]} if (
                _is_positive(divisor) and len(part) == 1
            ):
                factors = tuple([given] if isinstance(given, str) else given)
                if not all(
                    is_count(f) or (isinstance(f, str) and f in sizes) for f in factors
                ):
                    raise ConfigError(f"kernel: 'grid' has {short(part)}")
                grid.append(CeilDiv(factors, divisor))
            case int() if is_count(part):
                grid.append(part)
            case _:
                raise ConfigError(f"kernel: 'grid' has {short(part)}")
    if len(grid) != 3:
        raise ConfigError(f"kernel: 'grid' has {len(grid)} parts, expected 3")
    return tuple(grid)


def _pipeline(value: Any) -> PipelinedBuffer:
    fields = Fields(value, "pipeline")
    return PipelinedBuffer(
        buffer=fields.take("buffer", str),
        level=fields.one_of("level", LEVELS),
        stages=fields.count("stages"),
    )


def _is_size(value: Any) -> bool:
    return isinstance(value, str) or is_count(value)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
