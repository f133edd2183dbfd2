"""What the command-line tools share: arguments, exit status, output."""

from __future__ import annotations

import argparse
import errno
import importlib.util
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from alcop_mlir import collector, files, limits
from alcop_mlir.errors import AlcopError, ConfigError
from alcop_mlir.schedule import Partial
from alcop_mlir.target import DEFAULT_TARGET, Target, find_target, target_names
from alcop_mlir.variants import DEFAULT_VARIANTS, MAX_VARIANTS, check_most
from alcop_mlir.version import __version__

if TYPE_CHECKING:
    from alcop_mlir.compilation.compiler import Lowered
    from alcop_mlir.compilation.inputs import Input

Rows = Iterator[tuple[str, list[str]]]  # of a table: labels, and lines of text

COMPILE_OPTIONS = (
    "target",
    "schedule",
    "variants",
    "allow_tf32",
)  # of `add_compile_options`
_LABEL_WIDTH = 11
_STYLES = {"OK": "green", "FAILED": "bold red"}  # by what a text starts with


_NO_VALUE = re.compile(r"(--[\w-]+=|-\w=?)--")


class Parser(argparse.ArgumentParser):
    """argparse whose errors are ConfigErrors, and which takes no abbreviations."""

    def __init__(self, prog: str, description: str):
        super().__init__(prog=prog, description=description, allow_abbrev=False)
        self.add_argument(
            "--version", nargs=0, action=_Version, help="say versions and stop"
        )

    # typeshed has it as overloads.
    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """Refuses `--name=--` too, of which argparse makes an empty list."""
        for one in sys.argv[1:] if args is None else args:
            if _NO_VALUE.fullmatch(one):
                self.error(f"{one[:-2]}: expected a value, got '--'")
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Instead of exit status 2 and the usage."""
        raise ConfigError(f"{message}; see {self.prog} --help")


class _Version(argparse.Action):
    """Prints them, and ends the program as `--help` does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(version_text(parser.prog.partition(" ")[0]))
        raise SystemExit(0)


def version_text(tool: str) -> str:
    """The tool, its version, and the MLIR bindings installed; loads no MLIR."""
    from importlib import metadata

    found = [
        f"{package} {metadata.version(package)}"
        for package in ("mlir-python-bindings", "torch-mlir")
        if any(metadata.distributions(name=package))
    ]
    return f"{tool} {__version__} ({', '.join(found) or 'no MLIR bindings'})"


def add_compile_options(parser: argparse.ArgumentParser, default_target: str) -> None:
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
        "blocks in groups of rows, 'raster=8'; with K in parts, 'split_k=4'; by warps "
        "in roles on sm_90a, 'engine=wgmma'; what is left out is chosen by records or "
        "models",
    )
    add_variants(parser)
    parser.add_argument(
        "--allow-tf32",
        action="store_true",
        help="compile contractions of f32 too, with inputs rounded to tf32 (10 bits of "
        "mantissa, f32's exponent)",
    )


def add_variants(parser: argparse.ArgumentParser) -> None:
    """The option that says how many kernels a contraction with open sizes may have."""
    parser.add_argument(
        "--variants",
        type=_variants,
        metavar="N",
        help="most kernels of a contraction with sizes known at run time only, from "
        f"which each call picks one: 1 to {MAX_VARIANTS}, default {DEFAULT_VARIANTS}",
    )


def _variants(text: str) -> int:
    number = count(text)
    try:
        check_most(number)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return number


def count(text: str) -> int:
    """An option's value: a whole number of 0 or more."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is no whole number")
    return int(text)


def positive(text: str) -> int:
    """An option's value: a whole number of 1 or more."""
    if count(text) == 0:
        raise argparse.ArgumentTypeError("expected 1 or more, got 0")
    return int(text)


def sizes(text: str) -> dict[str, int]:
    """Type of an option: `M=1000,N=312`."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, number = part.partition("=")
        is_number = number.isascii() and number.isdecimal() and len(number) < 19
        if not equals or not is_number:
            why = f"'{part[:40]}' is no size, expected as in M=1000"
            raise argparse.ArgumentTypeError(why)
        if name.strip() in found:
            raise argparse.ArgumentTypeError(f"'{name.strip()[:40]}' is given twice")
        found[name.strip()] = int(number)
    return found


def flags_given(given: Any, options: Iterable[str]) -> list[str]:
    """Those of the options, which have no default but a false one, that are given."""
    values = ((option, getattr(given, option)) for option in options)
    return [
        f"--{option.replace('_', '-')}"
        for option, value in values
        if value is not None and value is not False
    ]


def target(given: Any, device: str = "") -> Target:
    """The one asked for, else on "cuda" the GPU's, else the default."""
    if given.target is None and device == "cuda":
        from alcop_mlir.runtime.launch import gpu_target

        return gpu_target()
    return find_target(given.target or DEFAULT_TARGET)


def schedule(given: Any) -> Partial | None:
    """What is asked for."""
    return Partial.parse(given.schedule) if given.schedule else None


def lower(given: Any, device: str = "", *, use_ptxas: bool = True) -> Lowered:
    """The module in the file given, after all passes, as the options say.

    Without a target, kernels of the file's own are compiled for the one that they name.
    """
    wanted, tiles = target(given, device), schedule(given)
    # MLIR is loaded only from here on: 0.1 s.
    from alcop_mlir.compilation import compiler, gpu_modules

    source = read_source(given.file)
    if given.target is None:
        wanted = gpu_modules.own_target(source.module.operation) or wanted
    options = compiler.Options(
        wanted,
        tiles,
        use_ptxas,
        allow_tf32=given.allow_tf32,
        variants=given.variants or DEFAULT_VARIANTS,
        # Upstream's host code has no pointers to constants on the GPU.
        inline_constants=getattr(given, "emit", "") == "gpu-binary",
    )
    return compiler.lower(source, options)


def read_source(file: str) -> Input:
    """The module in `file`, or on stdin where it is "-"."""
    from alcop_mlir.compilation import inputs  # loads MLIR: 0.1 s

    if file == "-":
        return inputs.read_text(files.read_most(sys.stdin.buffer, limits.MLIR, "stdin"))
    return inputs.read_file(file)


def write(content: str | bytes, path: str | None) -> None:
    """Write it to the file, whole or not at all, or to stdout for None and "-"."""
    if path not in (None, "-"):
        files.write_whole(path, content)
        return
    if isinstance(content, str):
        sys.stdout.write(content)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    sys.stdout.flush()


def run_command(command: Callable[[], int]) -> int:
    """The exit status of `command`: 1 after `error: ...`, 130 after Ctrl-C."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `alcop-compile ... | head`
    collector.skip_at_exit()
    if sys.stdout is None:  # closed: what is printed is not wanted
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
    try:
        status = command()
        sys.stdout.flush()
        return status
    except AlcopError as error:
        return _failed(str(error))
    except MemoryError as error:
        return _failed(f"out of memory: {error}" if str(error) else "out of memory")
    except OSError as error:
        if error.errno not in _FULL:
            raise
        # What is left in the buffer would fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _failed(f"cannot write: {error.strerror}")
    except KeyboardInterrupt:
        return 130


_FULL = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG, errno.EBADF)


def _failed(message: str) -> int:
    with suppress(OSError):
        print(f"error: {message}", file=sys.stderr)
    return 1


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


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """The rows as lines, with columns of one width each; those in `right` at right."""
    columns = list(zip(*rows, strict=True))
    for number, column in enumerate(columns):
        adjust = str.rjust if number in right else str.ljust
        width = max(map(len, column))
        columns[number] = tuple(adjust(cell, width) for cell in column)
    return ["  ".join(row) for row in zip(*columns, strict=True)]
