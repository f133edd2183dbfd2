"""alcop-compile: from a file with linalg ops to a bundle of GPU kernels.

Exit status 0, or 1 with one line `error: ...` on stderr; never a half-written file.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from alcop_mlir import collector
from alcop_mlir.errors import ConfigError
from alcop_mlir.target import DEFAULT_TARGET
from alcop_mlir.tools import command_line
from alcop_mlir.tools.command_line import Parser

if TYPE_CHECKING:
    from alcop_mlir.runtime.bundle import Bundle

TOOL = "alcop-compile"
_SECONDS = 120.0  # for the proof of one kernel


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    if arguments is None:  # of this process, which ends with it
        collector.stop()
    return command_line.run_command(lambda: _run(parser().parse_args(arguments)))


def parser() -> Parser:
    """All options."""
    parser = Parser(TOOL, "Compile the functions and kernels of an MLIR file for GPUs.")
    add = parser.add_argument
    add("file", nargs="?", default="-", help="MLIR file, text or bytecode; - is stdin")
    command_line.add_compile_options(parser, DEFAULT_TARGET)
    about = "where to write: for a bundle a directory or FILE.zip, else a file"
    add("-o", dest="output", metavar="PATH", help=about)
    add(
        "--emit",
        choices=("bundle", "mlir", "ptx", "gpu-binary"),
        default="bundle",
        help="a bundle that alcop-run takes; or, to stdout without -o: the MLIR after "
        "all passes, PTX, or the MLIR with kernels as gpu.binary, for gpu-to-llvm",
    )
    about = "leave out the cubin even if ptxas is installed"
    add("--no-ptxas", action="store_true", help=about)
    about = "prove that kernels use shared memory right, and store the certificates in "
    about += "the bundle; see alcop-certify"
    add("--certify", action="store_true", help=about)
    return parser


def _run(given: Any) -> int:
    _check_output(given)
    with collector.paused():  # it costs most while modules are loaded
        made = _made(given)
    if isinstance(made, str):
        command_line.write(made, given.output)
        return 0
    reports = ()
    if given.certify:
        from alcop_mlir.compilation.certification import certified_bundle

        gc.enable()  # a proof takes longer, and more memory
        made, reports = certified_bundle(made, _SECONDS)
    _show(made, given.output)
    for report in reports:
        print(f"certificate of {report.entry}: {report.verdict}")
    return 0


def _made(given: Any) -> Bundle | str:
    """What the options ask for: a bundle, or the text to write."""
    lowered = command_line.lower(given, use_ptxas=not given.no_ptxas)
    from alcop_mlir.compilation import compiler  # loaded by now

    if given.emit == "bundle":
        return compiler.pack(lowered)
    if given.emit == "mlir":
        return f"{lowered.module}\n"
    if given.emit == "gpu-binary":
        return compiler.binaries(lowered)
    codes = compiler.kernels(lowered).values()
    return "\n".join(dict.fromkeys(code.ptx for code in codes))


def _check_output(given: Any) -> None:
    """Raise ConfigError before compiling if the output cannot be written."""
    if given.certify and given.emit != "bundle":
        raise ConfigError(f"--certify is for bundles, got --emit {given.emit}")
    if given.emit != "bundle" or given.output is None:
        return
    if given.output == "-":
        raise ConfigError("a bundle cannot go to stdout, give -o DIR or -o FILE.zip")
    from alcop_mlir.runtime.bundle import check_path

    check_path(given.output)


def _show(bundle: Bundle, output: str | None) -> None:
    """Store the bundle if asked to, and print its summary."""
    from alcop_mlir.runtime.bundle import save
    from alcop_mlir.tools.summary import function_rows

    if output is not None:
        save(bundle, output)
    for function in bundle.functions:
        title = f"{function.name} for {bundle.target.name}"
        command_line.print_table(title, function_rows(function))
    print(
        f"wrote {output}" if output else "nothing written: give -o DIR or -o FILE.zip"
    )


if __name__ == "__main__":
    sys.exit(main())
