"""What the command-line tools share: arguments, exit status, output."""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

from alcop_mlir.errors import AlcopError, ConfigError
from alcop_mlir.target import target_names

Rows = Iterator[tuple[str, list[str]]]  # of a table: labels, and lines of text

_LABEL_WIDTH = 11
_STYLES = {"OK": "green", "FAILED": "bold red"}  # by what a text starts with


class Parser(argparse.ArgumentParser):
    """argparse whose errors are ConfigErrors, and which takes no abbreviations."""

    def __init__(self, prog: str, description: str):
        super().__init__(prog=prog, description=description, allow_abbrev=False)
        self.add_argument(
            "--version", action="store_true", help="say versions and stop"
        )

    def error(self, message: str) -> NoReturn:
        """Instead of exit status 2 and the usage."""
        raise ConfigError(f"{message}; see {self.prog} --help")


def add_compile_options(parser: Parser, default_target: str) -> None:
    """The options that say how to compile."""
    parser.add_argument(
        "--target",
        metavar="GPU",
        help=f"{', '.join(target_names())}; default {default_target}",
    )
    parser.add_argument(
        "--schedule",
        metavar="TEXT",
        help="tile sizes and stages, 'block=128,128,32 warp=64,64 stages=3,2'; with "
        "blocks in groups of rows, 'raster=8'; with K in parts, 'split_k=4'; default: "
        "chosen by shape and target",
    )
    parser.add_argument(
        "--allow-tf32",
        action="store_true",
        help="compile contractions of f32 too, with inputs rounded to tf32 (10 bits of "
        "mantissa, f32's exponent)",
    )


def count(text: str) -> int:
    """An option's value: a whole number of 0 or more."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number")
    return int(text)


def positive(text: str) -> int:
    """An option's value: a whole number of 1 or more."""
    if count(text) == 0:
        raise argparse.ArgumentTypeError("expected 1 or more, got 0")
    return int(text)


def run_command(command: Callable[[], int]) -> int:
    """The exit status of `command`: 1 after `error: ...`, 130 after Ctrl-C."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `alcop-compile ... | head`
    try:
        return command()
    except AlcopError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def print_version(tool: str) -> int:
    """Print what `--version` asks for; the exit status."""
    from alcop_mlir.tools.version import version_text

    print(version_text(tool))
    return 0


def is_installed(package: str) -> bool:
    """Whether an optional package can be imported; does not import it."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def seconds(value: float) -> str:
    """`value` with a unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def print_table(title: str, rows: Iterable[tuple[str, Sequence[str]]]) -> None:
    """A title and labelled lines; in colour on a terminal, if rich is installed."""
    lines = [
        (label if number == 0 else "", text)
        for label, texts in rows
        for number, text in enumerate(texts)
    ]
    if not sys.stdout.isatty() or not is_installed("rich"):
        print(title)
        for label, text in lines:
            print(f"  {label:<{_LABEL_WIDTH}}{text}".rstrip())
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True)
    console.print(Text(title, style="bold"))
    for label, text in lines:
        console.print(Text(f"  {label:<{_LABEL_WIDTH}}", style="cyan"), end="")
        console.print(Text(text, style=_STYLES.get(text.split(":")[0], "")))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines, with columns of one width each."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
