"""alcop-run: compile or load a kernel, run it on random arrays, check against NumPy.

On a GPU where there is one, else on the emulator. Exit status 0; 1 where the check
fails, or with one line `error: ...` on stderr.
"""

from __future__ import annotations

import sys
from argparse import BooleanOptionalAction
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from alcop_mlir import limits
from alcop_mlir.errors import ConfigError
from alcop_mlir.target import DEFAULT_TARGET
from alcop_mlir.tools import command_line
from alcop_mlir.tools.command_line import Parser, Rows, count, positive
from alcop_mlir.tools.emulator_options import (
    add_emulator_options,
    add_kernel_options,
    emulation,
    is_one_kernel,
)
from alcop_mlir.tools.profile import print_profile

if TYPE_CHECKING:
    from alcop_mlir.manifest.arrays import Parameter
    from alcop_mlir.manifest.functions import Function
    from alcop_mlir.runtime.bundle import Bundle
    from alcop_mlir.runtime.checking import Check
    from alcop_mlir.runtime.launch import Program
    from alcop_mlir.runtime.measure import Timing

TOOL = "alcop-run"
# For sizes that neither the program nor the user gives: ragged tiles, aligned rows.
_DEFAULT_SIZES = {"M": 200, "N": 312, "K": 248, "B": 3}
_OTHER_SIZE = 64
_GAP = 16  # elements, at least, between the rows of an array with strides


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    return command_line.run_command(lambda: _run(parser().parse_args(arguments)))


def parser() -> Parser:
    """All options."""
    parser = Parser(TOOL, "Run a function on random arrays, and check the result.")
    add = parser.add_argument
    add("file", nargs="?", help="MLIR file, or bundle of alcop-compile")
    about = "cuda, emulator, or auto (default): cuda where there is a GPU"
    add("--device", default="auto", metavar="NAME", help=about)
    command_line.add_compile_options(parser, f"the GPU's, else {DEFAULT_TARGET}")
    add("--function", metavar="NAME", help="which one, where the file holds several")
    about = "compare with a float64 reference in NumPy (default where there is one)"
    add("--check", action=BooleanOptionalAction, help=about)
    about = "sizes that the program leaves open, 'M=1000,N=312,K=248'"
    add("--sizes", type=command_line.sizes, metavar="M=N,...", help=about)
    add("--seed", type=count, default=0, metavar="N", help="of the inputs; default 0")
    about = (
        "mixed (default): a few elements of each array are denormal, huge, infinite, "
        "NaN or -0; plain: all in [-1, 1], integers of 8 bits; small: floats in "
        "[-1/8, 1/8], for the many layers of a network. Arrays of which the program "
        "takes a root or a logarithm, as variances, are positive numbers only"
    )
    add("--values", choices=("mixed", "plain", "small"), default="mixed", help=about)
    about = "runs to time; the median is shown; default 1"
    add("--repeat", type=positive, default=1, metavar="N", help=about)
    add_emulator_options(parser)
    add_kernel_options(parser)
    return parser


def _run(given: Any) -> int:
    if given.file is None:
        raise ConfigError(f"no file given; see {TOOL} --help")
    if is_one_kernel(given):
        from alcop_mlir.tools.run_kernel import run_kernel

        return run_kernel(given)
    from alcop_mlir.runtime import launch

    device = launch.pick_device(given.device)
    with emulation(given, device) as emulator:
        bundle = _bundle(given, device)
        program = launch.Program(bundle, given.function, device, emulator)
        function = _sized(program.function, given.sizes or {})
        total = sum(one.bytes for one in function.parameters)
        limits.ARRAYS.check(total, f"the arrays of '{function.name}'")
        check, timing = _execute(program, function, given)
    title = f"{function.name} for {bundle.target.name}"
    command_line.print_table(title, _rows(program, function, check, timing))
    for name, result in emulator.runs:
        print_profile(name, result)
    return 0 if check is None or check.ok else 1


def _bundle(given: Any, device: str) -> Bundle:
    """The bundle, loaded or compiled from the file."""
    from alcop_mlir.runtime import bundle

    if bundle.is_bundle(given.file):
        for flag in command_line.flags_given(given, command_line.COMPILE_OPTIONS):
            raise ConfigError(
                f"{flag} is for MLIR files, '{given.file}' is compiled already"
            )
        return bundle.load(given.file)
    lowered = command_line.lower(given, device)
    from alcop_mlir.compilation import compiler  # loaded by now

    return compiler.pack(lowered)


def _sized(function: Function, given: dict[str, int]) -> Function:
    """The function for the sizes given by the user, others from `_DEFAULT_SIZES`.

    Strides that are not given leave a gap after each row.
    """
    from alcop_mlir.manifest.arrays import named_sizes
    from alcop_mlir.manifest.functions import with_sizes

    named = named_sizes(function.parameters)
    for name in given:
        if name not in named:
            known = ", ".join(sorted(named)) or "none: all are constant"
            raise ConfigError(f"no size is called '{name}'; there are {known}")
    shapes = [parameter.shape for parameter in function.parameters]
    lengths = [s for shape in shapes for s in shape if isinstance(s, str)]
    defaults = {name: _DEFAULT_SIZES.get(name, _OTHER_SIZE) for name in lengths}
    sized = with_sizes(function, defaults | given)
    strides: dict[str, int] = {}
    for parameter in sized.parameters:
        strides |= _strides_with_gaps(parameter)
    return with_sizes(sized, strides)


def _strides_with_gaps(parameter: Parameter) -> dict[str, int]:
    """Numbers for the named strides of a parameter whose sizes are known."""
    found: dict[str, int] = {}
    step = 1
    for size, stride in zip(
        reversed(parameter.shape), reversed(parameter.strides or ()), strict=False
    ):
        if isinstance(stride, str):
            found[stride] = step if step == 1 else step - step % _GAP + 2 * _GAP
            stride = found[stride]
        step = max(step, stride * int(size))
    return found


def _execute(
    program: Program, function: Function, given: Any
) -> tuple[Check | None, Timing]:
    """Run for the check, then for the time; on the emulator one run serves both."""
    from alcop_mlir.runtime import checking, constants, launch, measure

    before = checking.random_arrays(function, given.seed, given.values)
    arrays = launch.to_device(before, program.device)
    timing = measure.time_on_host(program, list(arrays.values()), 1)
    check = None
    if given.check or (given.check is None and function.reference):
        read = constants.reference_constants(program.bundle, function)
        check = checking.check(function, before, launch.to_host(arrays), read)
    if program.device == "cuda":
        timing = measure.time_on_gpu(program, list(arrays.values()), given.repeat)
    elif given.repeat > 1:
        timing = measure.time_on_host(program, list(arrays.values()), given.repeat)
    return check, timing


def _rows(
    program: Program, function: Function, check: Check | None, timing: Timing
) -> Rows:
    from alcop_mlir.runtime import checking, measure
    from alcop_mlir.tools.summary import function_rows, variants_run

    device = program.device
    yield from function_rows(function)
    yield "device", [device]
    ran = list(variants_run(function, program.last_variants))
    if ran:
        yield "ran", ran
    runs = len(timing.seconds)
    text = command_line.seconds(timing.median)
    if device == "cuda" and function.reference:
        rate = checking.flops(function) / timing.median
        text += f", {rate / 1e12:.1f} TFLOP/s"
    if runs > 1:
        text += f", median of {runs}"
    if runs >= measure.QUARTILE_RUNS:
        text += f", quartiles {timing.spread:.1%} apart"
    yield "time", [text]
    if check is not None:
        yield "check", list(_check_lines(check))
    elif not function.reference:
        yield "check", [f"none: it is not known what '{function.name}' computes"]


def _check_lines(check: Check) -> Iterator[str]:
    if check.elements and check.unchecked == check.elements:
        yield f"none: nothing is known of any of the {check.elements} elements"
        return
    text = f"max relative error {check.error:.1e}, tolerance {check.tolerance:.1e}"
    yield f"{'OK' if check.ok else 'FAILED'}: {text}"
    if check.special:
        is_so = "are NaN or infinite, as expected"
        if not check.ok:
            is_so = "have to be NaN or infinite"
        yield f"{check.special} of {check.elements} elements {is_so}"
    if check.unchecked:
        yield f"{check.unchecked} of {check.elements} elements unchecked: unknown value"


if __name__ == "__main__":
    sys.exit(main())
