"""Compile and run one case on the emulator, hazards on, and look at every element."""

from __future__ import annotations

from sweep_cases import Case
from sweep_programs import Source, source
from sweep_shapes import shape

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.manifest.functions import Function, with_sizes
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.constants import reference_constants
from alcop_mlir.runtime.launch import Program, to_device
from alcop_mlir.schedule import Schedule

MOST_SPECIAL = 0.25  # of a result: NaN, infinite or unchecked


def failure(case: Case) -> str | None:
    """What is wrong with the case, and how to reproduce it; None if it is right."""
    written = source(case)
    try:
        program = compiled(case, written)
        for sizes in shape(case).sizes:
            problem = run(program, written, sizes, shape(case).pitch, case.number)
            if problem is not None:
                return report(case, written, f"{problem} with sizes {sizes}")
    except Exception as error:  # reported with all that is needed to repeat it
        return report(case, written, f"{type(error).__name__}: {error}")
    return None


def compiled(case: Case, written: Source) -> Program:
    """The case's program, for the emulator."""
    options = compiler.Options(
        schedule=Schedule.parse(case.schedule) if case.schedule else None,
        use_ptxas=False,
        allow_tf32=case.kind == "f32",
    )
    bundle = compiler.compile_source(inputs.read(written.text), options)
    return Program(bundle, device="emulator")


def run(
    program: Program,
    written: Source,
    sizes: dict[str, int],
    pitch: int = 0,
    seed: int = 0,
) -> str | None:
    """What is wrong with the result; a hazard or a fault is an EmulationError.

    seed: of the inputs, whose extreme values are others in each case
    """
    function = sized(program.function, written, sizes, pitch)
    if not function.reference:
        return "there is no reference"
    before = checking.random_arrays(function, seed)
    arrays = to_device(before, "emulator")
    program(*arrays.values())
    read = reference_constants(program.bundle, function)
    check = checking.check(function, before, arrays, read)
    if check.special + check.unchecked > MOST_SPECIAL * check.elements:
        return (
            f"of {check.elements} elements, {check.special} are NaN or infinite, "
            f"{check.unchecked} unchecked"
        )
    if check.ok:
        return None
    return f"error {check.error:.1e}, tolerance {check.tolerance:.1e}"


def sized(
    function: Function, written: Source, sizes: dict[str, int], pitch: int
) -> Function:
    """The function with numbers for the sizes and strides that it leaves open."""
    named: dict[str, int] = {}
    for parameter, loops in zip(function.parameters, written.loops, strict=True):
        for size, loop in zip(parameter.shape, loops, strict=False):
            if isinstance(size, str):
                named[size] = sizes[loop]
        for stride in parameter.strides or ():
            if isinstance(stride, str):
                named[stride] = sizes[loops[-1]] + pitch
    return with_sizes(function, named)


def report(case: Case, written: Source, problem: str) -> str:
    """The text of a failure, with all that is needed to reproduce it."""
    options = " --allow-tf32" if case.kind == "f32" else ""
    if case.schedule:
        options += f' --schedule "{case.schedule}"'
    return (
        f"{case}: {problem}\n{written.text}"
        f"again: ALCOP_SWEEP_CASE={case.number} pytest -q test/sweep\n"
        f"   or: alcop-run FILE.mlir --device emulator --seed {case.number}{options}"
    )
