"""What has to fit together in a manifest, besides each value by itself.

A function that is read without an error can be launched: modules, arrays and sizes that
are named are there, and nothing in it is beyond this launcher.
"""

from __future__ import annotations

from collections.abc import Iterator

from alcop_mlir.codec import shown
from alcop_mlir.errors import ConfigError
from alcop_mlir.manifest.arrays import named_sizes
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
)
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.reference import steps
from alcop_mlir.reference.steps import Size


def check(manifest: Manifest) -> None:
    """ConfigError where names in it have no meaning, or two, or it needs more than
    this version can launch.
    """
    modules = [module.name for module in manifest.modules]
    if len(set(modules)) < len(modules):
        raise ConfigError("the manifest names a module twice")
    for function in manifest.functions:
        _check_function(function)
        for kernel in function.kernels:
            if kernel.module not in modules:
                raise ConfigError(
                    f"kernel '{kernel.name}': unknown module {shown(kernel.module)}"
                )


def check_supported(function: Function) -> None:
    """ConfigError for what a manifest can say and no launch can do yet."""
    maps = [
        f"kernel '{kernel.name}' takes a tensor map of {one.array!r}"
        for kernel in function.kernels
        for one in kernel.arguments
        if isinstance(one, TensorMap)
    ]
    constants = [f"array {one.name!r} is a constant" for one in function.constants]
    prepare = function.prepare
    prepared = [] if prepare is None else [f"{prepare.function!r} prepares its weights"]
    for found in (*maps, *constants, *prepared):
        raise ConfigError(
            f"{function.name!r} cannot be launched: {found}, which this version does "
            "not support"
        )


def _check_function(function: Function) -> None:
    check_supported(function)
    where = f"function {shown(function.name)}"
    sizes = named_sizes(function.parameters)
    given = [parameter.name for parameter in function.parameters]
    arrays = [*given, *(one.name for one in function.intermediates)]
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
        if isinstance(size, str) and size not in sizes:
            raise ConfigError(f"{where}: unknown size {shown(size)}")
    for kernel in function.kernels:
        for argument in kernel.arguments:
            if isinstance(argument, Pointer) and argument.array not in arrays:
                raise ConfigError(
                    f"kernel '{kernel.name}': unknown array {shown(argument.array)}"
                )
    for one in _guards(function):
        if isinstance(one, Aligned) and one.array not in arrays:
            raise ConfigError(f"{where}: unknown array {shown(one.array)}")
    steps.check(function.reference, given, sizes)


def _sizes_used(function: Function) -> Iterator[Size]:
    """Sizes that are used, not given."""
    for intermediate in function.intermediates:
        yield from intermediate.shape
    for kernel in function.kernels:
        yield from (a.size for a in kernel.arguments if isinstance(a, SizeValue))
    for polynomial in _polynomials(function):
        for _, factors in polynomial.terms:
            yield from factors


def _polynomials(function: Function) -> Iterator[Polynomial]:
    for kernel in function.kernels:
        for part in kernel.grid:
            if isinstance(part, CeilDiv):
                yield part.dividend
    for condition in (*function.checks, *_guards(function)):
        if isinstance(condition, AtMost):
            yield from (condition.least, condition.most)
        elif not isinstance(condition, Aligned):
            yield condition.value


def _guards(function: Function) -> Iterator[Condition]:
    for launch in function.launches:
        for variant in launch.variants:
            yield from variant.guard
