"""What arrays of a function are called, wherever they are named."""

from __future__ import annotations


def argument_name(number: int) -> str:
    """How the argument `number`, counted from 0, is called."""
    return f"arg{number}"


def result_name(number: int, results: int) -> str:
    """How the result `number` of `results` is called."""
    return "result" if results == 1 else f"result{number}"


def prepared_name(number: int) -> str:
    """How the array `number` is called of those that are made once per weights."""
    return f"prepared{number}"


def is_result(name: str) -> bool:
    """Whether the array is a result, which a call may leave out."""
    number = name.removeprefix("result")
    return number != name and (not number or number.isdecimal())


def intermediate_name(number: int) -> str:
    """The name of the intermediate buffer with that number."""
    return f"tmp{number}"


def constant_file(sha256: str) -> str:
    """The name of the file whose contents, of constants, have that hash."""
    return f"constant-{sha256[:16]}.bin"
