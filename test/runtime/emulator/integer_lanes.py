"""One integer instruction over many operands, against a model on Python ints."""

from __future__ import annotations

from collections.abc import Callable

from kernel_text import REGISTER_BYTES, run_lanes
from operand_values import array, bits_of, check_lanes, operands, read, wrap

Model = Callable[..., int | None]


def register(kind: str) -> str:
    """The register class that holds an operand of this kind."""
    return f"b{max(16, bits_of(kind))}"


def check(
    text: str,
    kinds: tuple[str, ...],
    result: str,
    model: Model,
    seed: int,
    *,
    target: str = "sm_80",
    version: str = "7.8",
) -> None:
    """Run `text` on %a, %b, %c, ... into %d, and compare with the model.

    The model takes bit patterns; its result is cut to the width of the result.
    """
    columns = operands(seed, *kinds)
    inputs = {
        name: (register(kind), array(column, 8 * REGISTER_BYTES[register(kind)]))
        for name, kind, column in zip("abce", kinds, columns, strict=False)
    }
    got = run_lanes(
        text, inputs, {"d": register(result)}, target=target, version=version
    )["d"]
    bits = bits_of(register(result))
    wanted = [
        None if value is None else wrap(value, bits)
        for value in (model(*lane) for lane in zip(*columns, strict=True))
    ]
    check_lanes(got, wanted, columns)


def of_kind(kind: str, function: Callable[..., int | None]) -> Model:
    """A model over integers of one kind, made to take bit patterns."""
    return lambda *bits: function(*(read(value, kind) for value in bits))
