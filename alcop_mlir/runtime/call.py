"""The arrays of a call: in order or by name, and results that the call allocates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.names import is_result
from alcop_mlir.reference import steps
from alcop_mlir.runtime.arrays import Array, label

LEFT_OUT: Any = object()


def bind(
    function: Function,
    given: Sequence[Any],
    named: Mapping[str, Any],
    needed: Collection[str] | None = None,
) -> list[Any]:
    """An array for each parameter, LEFT_OUT for results that are to be allocated.

    needed: names of the parameters that must be given; all but results by default
    LaunchError where an argument is missing, given twice, or known by no such name.
    """
    parameters = function.parameters
    if len(given) > len(parameters):
        raise _wrong_number(function, len(given))
    arrays = dict(enumerate(given))
    for name, array in named.items():
        number = _position(function, name)
        if number in arrays:
            raise LaunchError(f"'{function.name}' got '{name}' twice")
        arrays[number] = array
    missing = (one.name for n, one in enumerate(parameters) if n not in arrays)
    if not all(
        is_result(name) if needed is None else name not in needed for name in missing
    ):
        raise _wrong_number(function, len(arrays))
    return [arrays.get(number, LEFT_OUT) for number in range(len(parameters))]


def with_arrays(
    function: Function, given: Sequence[Any], make: Callable[[Any], Any]
) -> list[Any]:
    """`given`, with an array by `make` for each Python or NumPy number.

    LaunchError where a parameter has dimensions, is written, or cannot hold the number.
    """
    return [
        make(_encoded(function, number, one)) if is_number(one) else one
        for number, one in enumerate(given)
    ]


def is_number(given: Any) -> bool:
    """Whether it is a number, not an array."""
    return isinstance(given, (bool, int, float, np.bool_, np.number))


def _encoded(function: Function, number: int, value: Any) -> Any:
    parameter = function.parameters[number]
    what = label(number, parameter)
    if parameter.shape or parameter.role != "in":
        shape = ", ".join(map(str, parameter.shape))
        raise LaunchError(f"{what} is a number, expected an array of shape ({shape})")
    wrong = LaunchError(f"{what} is {value}, which is no {parameter.dtype}")
    try:
        encoded = dtypes.encode(np.asarray(value), parameter.dtype).reshape(())
    except OverflowError:
        raise wrong from None
    if dtypes.is_integer(parameter.dtype) and encoded != value:
        raise wrong
    return encoded


def allocate(
    function: Function,
    views: Sequence[Array | None],
    make: Callable[[tuple[int, ...], np.dtype[Any]], Any],
) -> list[Any]:
    """An array by `make` where `views` has None, LEFT_OUT elsewhere.

    LaunchError where these do not say how large a result is.
    """
    sizes: dict[str, int] = {}
    for parameter, view in zip(function.parameters, views, strict=True):
        if view is not None and len(view.shape) == len(parameter.shape):
            named = zip(parameter.shape, view.shape, strict=True)
            sizes.update((size, n) for size, n in named if isinstance(size, str))
    like = [view.dtype for view in views if view is not None]
    made: list[Any] = []
    for number, parameter in enumerate(function.parameters):
        if views[number] is not None:
            made.append(LEFT_OUT)
            continue
        shape = steps.known(parameter.shape, sizes)
        for size in shape:
            if isinstance(size, str):
                raise LaunchError(
                    f"{label(number, parameter)} has {size} elements along one "
                    "dimension, which no other argument says: give it too"
                )
        made.append(
            make(tuple(map(int, shape)), dtypes.of_result(parameter.dtype, like))
        )
    return made


def shown(parameter: Parameter) -> str:
    """How messages and users name a parameter: as its source does."""
    return parameter.source_name or parameter.name


def _position(function: Function, name: str) -> int:
    """Of the parameter that the source calls `name`, else of the one of that name."""
    parameters = function.parameters
    for names in ([p.source_name for p in parameters], [p.name for p in parameters]):
        if name in names:
            return names.index(name)
    raise LaunchError(
        f"'{function.name}' has no argument '{name}', it has {_names(function)}"
    )


def _wrong_number(function: Function, given: int) -> LaunchError:
    least = sum(not is_result(one.name) for one in function.parameters)
    most = len(function.parameters)
    expected = str(most) if least == most else f"{least} to {most}"
    return LaunchError(
        f"'{function.name}' got {given} arrays, expected {expected}: {_names(function)}"
    )


def _names(function: Function) -> str:
    return ", ".join(map(shown, function.parameters))
