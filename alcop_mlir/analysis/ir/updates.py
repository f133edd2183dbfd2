"""Which arguments a function updates in place, as the attribute of these says.

    func.func @step(%cache: tensor<8x64xf16> {alcop.in_place = 0 : i64}, ...)
        -> (tensor<8x64xf16>, ...)

Result 0 is what `%cache` holds after the call; the compiled function returns it not.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import ir

IN_PLACE = "alcop.in_place"


def updated_arguments(func: ir.Operation) -> dict[int, int]:
    """The number of the argument by that of the result; wrong attributes left out."""
    return {
        result: argument
        for argument, result in _attributes(func)
        if _why_wrong(func, argument, result) is None
    }


def wrong_update(func: ir.Operation) -> str | None:
    """What is wrong with such an attribute of `func`; None if nothing is."""
    taken: set[Any] = set()
    for argument, result in _attributes(func):
        why = _why_wrong(func, argument, result)
        if why is None and result in taken:
            why = f"result {result + 1} is that of another argument"
        if why is not None:
            return f"'{IN_PLACE}' of argument {argument + 1}: {why}"
        taken.add(result)
    return None


def _attributes(func: ir.Operation) -> list[tuple[int, Any]]:
    """Arguments that have the attribute, with the number in it, None for others."""
    if "arg_attrs" not in func.attributes:
        return []
    every = [ir.DictAttr(one) for one in func.attributes["arg_attrs"]]
    return [
        (number, getattr(given[IN_PLACE], "value", None))
        for number, given in enumerate(every)
        if IN_PLACE in given
    ]


def _why_wrong(func: ir.Operation, argument: int, result: Any) -> str | None:
    kind = ir.FunctionType(func.attributes["function_type"].value)
    if type(result) is not int or not 0 <= result < len(kind.results):
        return f"expected the number of a result, less than {len(kind.results)}"
    if kind.inputs[argument] != kind.results[result]:
        return (
            f"result {result + 1} is {kind.results[result]}, expected "
            f"{kind.inputs[argument]} as the argument"
        )
    return None
