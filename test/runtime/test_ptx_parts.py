"""PTX of parts of a module is joined to the text of the whole."""

from __future__ import annotations

from alcop_mlir.runtime.ptx_parts import join

HEAD = ".version 7.0\n\n"
SHARED = ".extern .shared .align 1024 .b8 memory[];\n\n"


def kernel(name: str, number: int, declared: str = "") -> str:
    return (
        f"\t// .globl\t{name}\n{declared}.visible .entry {name}()\n{{\n"
        f"\t.local .b8 \t__local_depot{number}[8];\n$L__BB{number}_1:\n"
        f"\tbra \t$L__BB{number}_1;\n}}\n"
    )


def test_numbers_go_on_and_declarations_are_not_repeated() -> None:
    names = ["a", "b", "c"]
    whole = HEAD + "".join(
        kernel(name, number, SHARED if number == 0 else "")
        for number, name in enumerate(names)
    )
    assert join([HEAD + kernel(name, 0, SHARED) for name in names]) == whole


def test_the_first_that_uses_shared_memory_declares_it() -> None:
    parts = [kernel("a", 0), kernel("b", 0, SHARED), kernel("c", 0, SHARED)]
    whole = HEAD + kernel("a", 0) + kernel("b", 1, SHARED) + kernel("c", 2)
    assert join([HEAD + part for part in parts]) == whole


def test_one_part_is_the_whole() -> None:
    assert join([HEAD + kernel("a", 0)]) == HEAD + kernel("a", 0)
