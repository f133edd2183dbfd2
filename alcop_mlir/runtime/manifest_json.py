"""The functions of a bundle as JSON, which may be damaged or hostile when it is read.

A function that is read without an error can be launched: arrays and sizes that are
named are there, numbers are in range.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

from alcop_mlir.errors import ConfigError
from alcop_mlir.fields import Fields, is_count, short
from alcop_mlir.manifest.arrays import (
    DTYPE_PATTERN,
    DTYPES,
    ROLES,
    Intermediate,
    Parameter,
    Role,
    named_sizes,
)
from alcop_mlir.manifest.bundles import SCHEMA, Manifest, Module, StoredFile
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import (
    LEVELS,
    Aligned,
    Argument,
    AtMost,
    CeilDiv,
    Condition,
    Divisible,
    Kernel,
    Launch,
    Level,
    PipelinedBuffer,
    Pointer,
    SizeValue,
    TensorMap,
    Variant,
)
from alcop_mlir.polynomials import Polynomial, collected
from alcop_mlir.reference import steps
from alcop_mlir.schedule import Schedule

_IDENTIFIER = r"[A-Za-z_$][\w$]*"


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """`manifest` as JSON values; ConfigError for what cannot be stored yet."""
    return {
        "schema": manifest.schema,
        "compiler": manifest.compiler,
        "source_sha256": manifest.source_sha256,
        "target": manifest.target,
        "modules": [asdict(module) for module in manifest.modules],
        "functions": [function_to_json(one) for one in manifest.functions],
    }


def manifest_from_json(value: Any) -> Manifest:
    """The checked manifest; ConfigError says what is wrong in it."""
    fields = Fields(value, "manifest.json")
    schema = fields.take("schema", int)
    if schema != SCHEMA:
        raise ConfigError(
            f"schema is {schema}, this version reads {SCHEMA}: compile it again"
        )
    modules = tuple(_module(item) for item in fields.take("modules", list))
    functions = tuple(function_from_json(f) for f in fields.take("functions", list))
    names = {module.name for module in modules}
    for function in functions:
        for kernel in function.kernels:
            if kernel.module not in names:
                raise ConfigError(f"kernel: unknown module {short(kernel.module)}")
    if len(names) < len(modules):
        raise ConfigError("manifest.json names a module twice")
    return Manifest(
        compiler=fields.take("compiler", str),
        source_sha256=fields.take("source_sha256", str),
        target=fields.take("target", str),
        modules=modules,
        functions=functions,
    )


def _module(value: Any) -> Module:
    fields = Fields(value, "module")
    cubin = None if value.get("cubin") is None else _file(value["cubin"])
    return Module(fields.matching("name", _IDENTIFIER), _file(value.get("ptx")), cubin)


def _file(value: Any) -> StoredFile:
    fields = Fields(value, "file")
    return StoredFile(fields.take("name", str), fields.take("sha256", str))


def function_to_json(function: Function) -> dict[str, Any]:
    """`function` as JSON values; ConfigError for what cannot be stored yet."""
    if function.constants or function.prepare is not None:
        raise ConfigError(
            f"'{function.name}' cannot be stored: constants and what prepares weights "
            "have no form in the manifest yet"
        )
    value = {
        "name": function.name,
        "parameters": [
            _parameter_to_json(parameter) for parameter in function.parameters
        ],
        "launches": [
            [_variant_to_json(variant) for variant in launch.variants]
            for launch in function.launches
        ],
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
    for name in ("constants", "prepare"):
        if value.get(name):
            raise ConfigError(f"function has '{name}', which this version cannot read")
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
        launches=tuple(
            _launch(item, known, sizes) for item in fields.take("launches", list)
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
        "module": kernel.module,
        "arguments": [_argument_to_json(one) for one in kernel.arguments],
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
    return value if kernel.fallback is None else value | {"fallback": kernel.fallback}


def _variant_to_json(variant: Variant) -> dict[str, Any]:
    guard = [_condition_to_json(one) for one in variant.guard]
    kernel = _kernel_to_json(variant.kernel)
    return {"guard": guard, "kernel": kernel} if guard else {"kernel": kernel}


def _condition_to_json(condition: Condition) -> dict[str, Any]:
    if isinstance(condition, AtMost):
        order = (condition.least, condition.most)
        return {"at_most": [_polynomial_to_json(one) for one in order]}
    if isinstance(condition, Divisible):
        return {"divisible": [_polynomial_to_json(condition.value), condition.by]}
    return {"aligned": [condition.array, condition.bytes]}


def _argument_to_json(argument: Argument) -> dict[str, Any]:
    if isinstance(argument, TensorMap):
        raise ConfigError(f"the tensor map of '{argument.array}' cannot be stored yet")
    if isinstance(argument, Pointer):
        return {"pointer": argument.array}
    return {"size": argument.size}


def _ceildiv_to_json(part: CeilDiv) -> dict[str, Any]:
    """`{"ceildiv": [[[1, ["M"]]], 128]}`."""
    return {"ceildiv": [_polynomial_to_json(part.dividend), part.divisor]}


def _intermediate(value: Any, sizes: set[str]) -> Intermediate:
    fields = Fields(value, "intermediate")
    shape = tuple(fields.take("shape", list))
    if not all(is_count(s) or (isinstance(s, str) and s in sizes) for s in shape):
        raise ConfigError(f"intermediate: 'shape' is {short(list(shape))}")
    dtype = fields.matching("dtype", DTYPE_PATTERN)
    return Intermediate(fields.take("name", str), dtype, shape)


def _polynomial_to_json(polynomial: Polynomial) -> list[Any]:
    """`[[8, ["M", "N"]], [2, []]]` for 8 * M * N + 2."""
    return [[number, list(factors)] for number, factors in polynomial.terms]


def _launch(value: Any, arrays: set[str], sizes: set[str]) -> Launch:
    if not isinstance(value, list):
        raise ConfigError(f"launch is {short(value)}, expected a list")
    return Launch(tuple(_variant(item, arrays, sizes) for item in value))


def _variant(value: Any, arrays: set[str], sizes: set[str]) -> Variant:
    fields = Fields(value, "variant")
    guard = fields.take("guard", list) if value.get("guard") is not None else ()
    return Variant(
        _kernel(fields.take("kernel", dict), arrays, sizes),
        tuple(_condition(item, arrays, sizes) for item in guard),
    )


def _condition(value: Any, arrays: set[str], sizes: set[str]) -> Condition:
    match value:
        case {"at_most": [list(), list()] as order}:
            return _at_most(order, sizes)
        case {"divisible": [list(terms), by]} if _is_positive(by):
            return Divisible(_polynomial(terms, sizes), by)
        case {"aligned": [str(array), bytes_]} if array in arrays and _is_positive(
            bytes_
        ):
            return Aligned(array, bytes_)
    raise ConfigError(f"variant: 'guard' has {short(value)}")


def _argument(value: Any, arrays: set[str], sizes: set[str]) -> Argument:
    match value:
        case {"pointer": str(array)} if array in arrays:
            return Pointer(array)
        case {"size": size} if is_count(size) or (
            isinstance(size, str) and size in sizes
        ):
            return SizeValue(size)
        case {"tensor_map": _}:
            raise ConfigError("kernel: tensor maps cannot be read by this version")
    raise ConfigError(f"kernel: unknown argument {short(value)}")


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
        raise ConfigError(f"polynomial has {short(term)}")
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
        role=cast(Role, fields.one_of("role", ROLES)),
        strides=strides,
        row_alignment=1 if alignment is None else max(1, alignment),
    )


def _kernel(value: Any, arrays: set[str], sizes: set[str]) -> Kernel:
    fields = Fields(value, "kernel")
    arguments = tuple(
        _argument(item, arrays, sizes) for item in fields.take("arguments", list)
    )
    block = fields.take("block", list)
    if len(block) != 3 or not all(_is_positive(part) for part in block):
        raise ConfigError(f"kernel: 'block' is {short(block)}")
    schedule = None
    if value.get("schedule") is not None:
        schedule = Schedule.from_dict(fields.take("schedule", dict))
    return Kernel(
        name=fields.matching("name", _IDENTIFIER),
        module=fields.take("module", str),
        arguments=arguments,
        grid=_grid(fields.take("grid", list), sizes),
        block=(block[0], block[1], block[2]),
        shared_bytes=fields.count("shared_bytes"),
        schedule=schedule,
        pipelines=tuple(_pipeline(p) for p in fields.take("pipelines", list)),
        registers=fields.optional_count("registers"),
        spill_bytes=fields.optional_count("spill_bytes"),
        static_shared_bytes=fields.optional_count("static_shared_bytes"),
        fallback=fields.take("fallback", str) if "fallback" in value else None,
    )


def _grid(parts: list[Any], sizes: set[str]) -> Any:
    grid: list[int | CeilDiv] = []
    for part in parts:
        match part:
            case {"ceildiv": [list(terms), divisor]} if _is_positive(divisor):
                grid.append(CeilDiv(_polynomial(terms, sizes), divisor))
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
        level=cast(Level, fields.one_of("level", LEVELS)),
        stages=fields.count("stages"),
    )


def _is_size(value: Any) -> bool:
    return isinstance(value, str) or is_count(value)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
