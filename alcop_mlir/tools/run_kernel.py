"""`alcop-run FILE --launch FILE.json`: one kernel on the emulator.

Of a .ptx file, or of MLIR with a `gpu.module` or kernels of the nvvm dialect, from
which PTX is made first.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir import files, limits
from alcop_mlir.errors import ConfigError
from alcop_mlir.runtime.emulation import Emulation
from alcop_mlir.tools import command_line
from alcop_mlir.tools.command_line import COMPILE_OPTIONS, Rows, flags_given
from alcop_mlir.tools.emulator_options import emulation
from alcop_mlir.tools.launch_file import (
    ArrayArgument,
    Columns,
    Im2colMapArgument,
    LaunchArgument,
    LaunchFile,
    PointersArgument,
    StructArgument,
    TensorMapArgument,
    Tiles,
    ValueArgument,
    buffers,
    read_launch,
)
from alcop_mlir.tools.profile import print_profile
from alcop_mlir.tools.summary import extent

# Options of alcop-run that say what to run, and how to check it.
_NOT_FOR_ONE_KERNEL = ("function", "sizes")


def run_kernel(given: Any) -> int:
    """Run the kernel, and print the findings; exit status 1 for hazards."""
    _check_options(given)
    launch = read_launch(given.launch)
    ptx = _ptx(given, launch.kernel)
    generator = np.random.default_rng(given.seed)
    arguments = [_made(argument, generator) for argument in launch.arguments]
    symbols = {s.name: s.array.make(generator) for s in launch.symbols}
    with emulation(given, "emulator") as emulator:
        emulator.run(
            ptx,
            launch.kernel,
            launch.grid,
            launch.block,
            arguments,
            launch.dynamic_shared,
            launch.cooperative,
            symbols,
            launch.cluster,
        )
    if given.save_outputs is not None:
        _save(given.save_outputs, arguments, symbols)
    title = launch.kernel or Path(given.file).stem
    command_line.print_table(title, _rows(launch, emulator))
    (_, result) = emulator.runs[0]
    print_profile(title, result)
    return 1 if result.hazards else 0


def _made(argument: LaunchArgument, generator: np.random.Generator) -> Any:
    """The argument of `emulate`, with arrays of its own."""
    from alcop_mlir.runtime.emulator import Pointers, Struct

    if isinstance(argument, TensorMapArgument):
        return _made_map(argument.tensor_map, generator)
    if isinstance(argument, Im2colMapArgument):
        return _made_map(argument.im2col_map, generator)
    if isinstance(argument, ArrayArgument):
        return argument.array.make(generator)
    if isinstance(argument, PointersArgument):
        return Pointers([one.array.make(generator) for one in argument.pointers])
    if isinstance(argument, ValueArgument):
        return argument.make()
    members: dict[int, Any] = {}
    for member in argument.struct.members:
        if member.array is not None:
            members[member.offset] = member.array.make(generator)
        elif member.tensor_map is not None:
            members[member.offset] = _made_map(member.tensor_map, generator)
        else:
            assert member.value is not None
            members[member.offset] = ValueArgument(member.value, member.dtype).make()
    return Struct(argument.struct.size, members)


def _made_map(given: Tiles | Columns, generator: np.random.Generator) -> Any:
    """A tensor map of an array of its own."""
    from alcop_mlir.runtime.emulator import Im2colMap, TensorMap

    array = given.array.make(generator)
    dtype = "bf16" if given.array.dtype == "bf16" else None
    steps, fill = given.element_strides, given.nan_fill
    rest = (given.swizzle, steps, fill, dtype, given.interleave)
    if isinstance(given, Tiles):
        return TensorMap(array, given.box, *rest)
    window = (given.channels, given.pixels, given.lower, given.upper)
    return Im2colMap(array, *window, *rest)


def _ptx(given: Any, kernel: str | None) -> str:
    """The PTX that holds the kernel (None: the only one)."""
    if not given.file.endswith(".ptx"):
        return _compiled(given, kernel)
    try:
        return files.read(given.file, limits.PTX).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"'{given.file}' is no UTF-8 text") from None


def _compiled(given: Any, kernel: str | None) -> str:
    lowered = command_line.lower(given, use_ptxas=False)
    from alcop_mlir.compilation import compiler  # loaded by now

    texts = [code.ptx for code in compiler.kernels(lowered).values()]
    if kernel is None and len(texts) > 1:
        raise ConfigError(
            f"'{given.file}' has {len(texts)} gpu.modules: name a kernel in "
            f"'{given.launch}'"
        )
    entry = re.compile(rf"\.entry {re.escape(kernel or '')}\b")
    # Where none has it, the emulator says which kernels the first one has.
    return next((text for text in texts if entry.search(text)), texts[0])


def _check_options(given: Any) -> None:
    is_ptx = given.file.endswith(".ptx")
    kind = ".ptx files" if is_ptx else "one kernel of a file"
    if given.device not in ("auto", "emulator"):
        what = "a .ptx file" if is_ptx else "one kernel of a file"
        raise ConfigError(
            f"{what} runs on the emulator only, got --device {given.device}"
        )
    for flag in flags_given(given, (*COMPILE_OPTIONS * is_ptx, *_NOT_FOR_ONE_KERNEL)):
        raise ConfigError(f"{flag} is not for {kind}")
    if given.repeat != 1:
        raise ConfigError(f"--repeat is not for {kind}")
    if given.launch is None:
        raise ConfigError(
            "a .ptx file needs --launch FILE.json: grid, block and arguments"
        )


def _rows(launch: LaunchFile, emulator: Emulation) -> Rows:
    (_, result) = emulator.runs[0]
    shown = [_shown(argument) for argument in launch.arguments]
    numbered = [[str(number), *texts] for number, texts in enumerate(shown)]
    yield "arguments", command_line.aligned(numbered) or ["none"]
    yield "launch", [f"{extent(launch.grid)} blocks of {extent(launch.block)} threads"]
    if launch.dynamic_shared:
        yield "shared", [f"{launch.dynamic_shared} bytes, dynamic"]
    time = command_line.seconds(result.seconds)
    yield "time", [f"{time}, {result.warp_instructions} instructions"]
    if result.printed:
        yield "printed", result.printed.splitlines()
    if emulator.options.hazards:
        yield "hazards", [str(hazard) for hazard in result.hazards] or ["none"]
        if result.notes:
            yield "notes", [str(note) for note in result.notes]
    else:
        yield "hazards", ["not looked for"]


def _shown(argument: LaunchArgument) -> list[str]:
    """What the arrays are, how they begin; or a value and its type."""
    if isinstance(argument, ValueArgument):
        return [str(argument.value), argument.dtype or ""]
    arrays = buffers(argument)
    sizes = [f"{'x'.join(map(str, a.shape))}x{a.dtype}" for a in arrays]
    text = ", ".join(sizes)
    if isinstance(argument, StructArgument):
        text = f"{argument.struct.size} bytes: {text or 'no array'}"
    return [text, ", ".join(dict.fromkeys(a.init for a in arrays))]


def _save(folder: str, arguments: list[Any], symbols: dict[str, Any]) -> None:
    """`argument0.npy` by position, `argument1.0.npy` inside, `NAME.npy` of symbols."""
    from alcop_mlir.runtime.emulator.structures import inner

    files.make_folder(folder)
    named = dict(symbols)
    for number, value in enumerate(arguments):
        arrays = [one for one in inner(value) if isinstance(one, np.ndarray)]
        for place, array in enumerate(arrays):
            is_argument = array is value
            tail = "" if is_argument else f".{place}"
            named[f"argument{number}{tail}"] = array
    for name, array in named.items():
        data = io.BytesIO()
        np.save(data, array)
        files.write_whole(Path(folder) / f"{name}.npy", data.getvalue())
