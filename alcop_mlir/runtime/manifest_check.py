"""What has to fit together in a function of a manifest, besides each value by itself.

A function that is read without an error can be launched: arrays and sizes that are
named are there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from alcop_mlir.codec import shown
from alcop_mlir.errors import ConfigError
from alcop_mlir.reference import steps
from alcop_mlir.reference.steps import Size
from alcop_mlir.runtime.manifest import CeilDiv, Function, Kernel, named_sizes


def check(function: Function) -> None:
    """ConfigError where names in it have no meaning, or two."""
    sizes = named_sizes(function.parameters)
    given = [parameter.name for parameter in function.parameters]
    arrays = [*given, *(one.name for one in function.intermediates)]
    if len(set(arrays)) < len(arrays):
        raise ConfigError("function names an array twice")
    for parameter in function.parameters:
        if parameter.strides and len(parameter.strides) != len(parameter.shape):
            raise ConfigError(
                f"parameter '{parameter.name}' has {len(parameter.strides)} strides, "
                f"expected {len(parameter.shape)}"
            )
    _check_sizes(_sizes_used(function), sizes)
    for kernel in function.kernels:
        _check_arguments(kernel, {*arrays, *sizes})
    steps.check(function.reference, given, sizes)


def _sizes_used(function: Function) -> Iterator[Size]:
    """Sizes that are used, not given."""
    for intermediate in function.intermediates:
        yield from intermediate.shape
    for kernel in function.kernels:
        for part in kernel.grid:
            yield from part.sizes if isinstance(part, CeilDiv) else ()
    for condition in function.checks:
        for _, factors in (*condition.least.terms, *condition.most.terms):
            yield from factors


def _check_sizes(used: Iterable[Size], sizes: Collection[str]) -> None:
    for size in used:
        if isinstance(size, str) and size not in sizes:
            raise ConfigError(f"function: unknown size {shown(size)}")


def _check_arguments(kernel: Kernel, known: Collection[str]) -> None:
    for argument in kernel.arguments:
        if isinstance(argument, str) and argument not in known:
            raise ConfigError(
                f"kernel '{kernel.name}': unknown argument {shown(argument)}"
            )
