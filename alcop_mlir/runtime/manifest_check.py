"""What has to fit together in a manifest, besides each value by itself.

A function that is read without an error can be launched: modules, arrays and sizes that
are named are there, and nothing in it is beyond this launcher.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from alcop_mlir import limits
from alcop_mlir.codec_forms import shown
from alcop_mlir.element_types import ARRAY_TYPES, element_bytes
from alcop_mlir.errors import ConfigError
from alcop_mlir.extents import names
from alcop_mlir.manifest.arrays import Constant, named_sizes, product
from alcop_mlir.manifest.bundles import Manifest
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import (
    Aligned,
    AtMost,
    CeilDiv,
    Condition,
    Pointer,
    SizeValue,
    TensorMap,
    block_counts,
)
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.reference import steps


def check(manifest: Manifest) -> None:
    """ConfigError where names in it have no meaning, or two, or it needs more than
    this version can launch.
    """
    modules = [module.name for module in manifest.modules]
    if len(set(modules)) < len(modules):
        raise ConfigError("the manifest names a module twice")
    data = {file.name for file in manifest.data}
    if len(data) < len(manifest.data):
        raise ConfigError("the manifest names a file of constants twice")
    for function in manifest.functions:
        _check_function(function)
        _check_prepare(function, manifest.functions)
        for constant in function.constants:
            _check_constant(constant, data)
        for kernel in function.kernels:
            if kernel.module not in modules:
                raise ConfigError(
                    f"kernel '{kernel.name}': unknown module {shown(kernel.module)}"
                )


def check_data(manifest: Manifest, contents: Mapping[str, bytes]) -> None:
    """ConfigError where the files of constants do not hold what these say."""
    ends = dict.fromkeys(contents, 0)
    for function in manifest.functions:
        for one in function.constants:
            ends[one.file] = max(ends[one.file], one.offset + one.bytes)
    for name, end in ends.items():
        if len(contents[name]) != end:
            raise ConfigError(
                f"{name} has {len(contents[name])} bytes, its constants "
                f"{limits.number(end)}"
            )


def _check_constant(constant: Constant, files: Collection[str]) -> None:
    where = f"constant {shown(constant.name)}"
    if constant.file not in files:
        raise ConfigError(f"{where}: unknown file {shown(constant.file)}")
    needed = element_bytes(constant.dtype) * product(constant.shape, {})
    if constant.bytes != needed:
        elements = "x".join((*map(limits.number, constant.shape), constant.dtype))
        raise ConfigError(
            f"{where} has {limits.number(constant.bytes)} bytes, expected "
            f"{limits.number(needed)} of {elements}"
        )


def _check_function(function: Function) -> None:
    where = f"function {shown(function.name)}"
    sizes = named_sizes(function.parameters)
    given = [parameter.name for parameter in function.parameters]
    constants = [one.name for one in function.constants]
    prepared = [one.name for one in function.prepare.arrays] if function.prepare else []
    inner = [one.name for one in function.intermediates]
    arrays = [*given, *prepared, *inner, *constants]
    if len(set(arrays)) < len(arrays):
        raise ConfigError(f"{where} names an array twice")
    for parameter in function.parameters:
        rank, strides = len(parameter.shape), parameter.strides
        if strides is not None and len(strides) != rank:
            raise ConfigError(
                f"{where}: parameter {shown(parameter.name)} has {len(strides)} "
                f"strides, expected {rank}"
            )
    for size in _sizes_used(function):
        if size not in sizes:
            raise ConfigError(f"{where}: unknown size {shown(size)}")
    for kernel in function.kernels:
        for argument in kernel.arguments:
            is_array = isinstance(argument, (Pointer, TensorMap))
            if is_array and argument.array not in arrays:
                raise ConfigError(
                    f"kernel '{kernel.name}': unknown array {shown(argument.array)}"
                )
    for one in _guards(function):
        if isinstance(one, Aligned) and one.array not in (*given, *prepared):
            raise ConfigError(f"{where}: unknown array {shown(one.array)}")
    for step in function.reference:
        if step.out in constants:
            raise ConfigError(f"reference: {shown(step.out)} is a constant")
    known = (one.name for one in function.constants if one.dtype in ARRAY_TYPES)
    steps.check(function.reference, (*given, *known), sizes)


def _check_prepare(function: Function, functions: Sequence[Function]) -> None:
    """What prepares weights takes these, and makes what the function uses."""
    prepare = function.prepare
    if prepare is None:
        return
    where = f"function {shown(function.name)}"
    known = {one.name: one for one in functions if one.prepare is None}
    parameters = {one.name: one for one in function.parameters}
    if prepare.function not in known:
        raise ConfigError(
            f"{where}: unknown function {shown(prepare.function)} prepares its weights"
        )
    for name in prepare.weights:
        if name not in parameters:
            raise ConfigError(f"{where}: unknown weight {shown(name)}")
    taken = [parameters[name] for name in prepare.weights]
    given = [(one.dtype, one.shape) for one in (*taken, *prepare.arrays)]
    wanted = known[prepare.function].parameters
    if given != [(one.dtype, one.shape) for one in wanted]:
        raise ConfigError(
            f"{where}: {shown(prepare.function)} does not make of its weights what "
            "it uses"
        )


def _sizes_used(function: Function) -> Iterator[str]:
    """Names of sizes that are used, not given."""
    for intermediate in function.intermediates:
        for extent in intermediate.shape:
            yield from names(extent)
    for kernel in function.kernels:
        for argument in kernel.arguments:
            if isinstance(argument, SizeValue):
                yield from names(argument.size)
            elif isinstance(argument, TensorMap):
                for extent in (*argument.shape, *argument.strides):
                    yield from names(extent)
    for polynomial in _polynomials(function):
        for _, factors in polynomial.terms:
            yield from factors


def _polynomials(function: Function) -> Iterator[Polynomial]:
    for kernel in function.kernels:
        for part in chain.from_iterable(map(block_counts, kernel.grid)):
            if isinstance(part, CeilDiv):
                yield part.dividend
    variants = [one for launch in function.launches for one in launch.variants]
    checks = [check for variant in variants for check in variant.checks]
    for condition in (*function.checks, *checks, *_guards(function)):
        if isinstance(condition, AtMost):
            yield from (condition.least, condition.most)
        elif not isinstance(condition, Aligned):
            yield condition.value


def _guards(function: Function) -> Iterator[Condition]:
    for launch in function.launches:
        for variant in launch.variants:
            yield from variant.guard
