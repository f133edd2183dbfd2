"""Kernels that other compilers make, and how they run on the emulator.

A script of this folder, run by the Python of an environment that has a compiler, prints
records of kernels: PTX, or a source that nvcc, of the CUDA toolkit, builds here.
Nothing of theirs is stored.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from findings import launches

from alcop_mlir.runtime.emulator import Hazard, Result, Struct, TensorMap, emulate

FOLDER = Path(__file__).parent
ORDERS = ("lockstep", "ascending", "descending", "random")
MODES = tuple(product(("late", "early"), ORDERS))
# The module of each compiler, by which an environment is known to have it.
MODULES = {
    "triton": ("triton",),
    "tilelang": ("tilelang",),
    "cute": ("nvidia_cutlass_dsl",),
    "cutlass": ("cutlass_library", "tilelang"),
}
CAPABILITIES = (80, 90)
ENVIRONMENTS = "ALCOP_FOREIGN_PYTHON"  # interpreters, separated as in PATH
# What `warp_specialised_gemm.cu` puts into parameters in place of an address or a map.
_ADDRESS, _NEXT, _MAP = 0x70_0000_0000, 0x1000_0000, 0xA0
_SWIZZLES = (0, 32, 64, 128)  # CUtensorMapSwizzle


class Missing(Exception):
    """What a kernel cannot be built without; the text says what is missing."""


class Failed(Exception):
    """A command that builds kernels has failed; the text is its first error."""


@dataclass(frozen=True)
class Program:
    """A kernel of another compiler.

    parameters: what each one is, the name of an array or its tensor map; None where
    they are the arguments of its launch; a structure of `structure` bytes where given
    more: pointers behind them that nobody uses
    """

    compiler: str
    name: str
    ptx: str
    entry: str | None
    threads: int
    shared: int
    parameters: Sequence[Any] | None = None
    structure: Mapping[str, Any] | None = None
    more: int = 0


# The programs of a compiler for a target, by their names.
Builder = Callable[[str, int], dict[str, Program]]


@dataclass(frozen=True)
class Found:
    """What runs of a program in several modes have shown.

    wrong: the modes whose result is not right
    """

    wrong: tuple[tuple[str, str], ...]
    hazards: tuple[Hazard, ...]
    notes: tuple[str, ...]


def interpreter(compiler: str) -> str:
    """The first Python of `ALCOP_FOREIGN_PYTHON` that has it. Raises `Missing`."""
    for python in os.environ.get(ENVIRONMENTS, "").split(os.pathsep):
        if python and _modules(python) & {*MODULES[compiler]}:
            return os.path.abspath(python)
    raise Missing(f"no {compiler} in {ENVIRONMENTS}: see `make test-foreign`")


@cache
def _modules(python: str) -> frozenset[str]:
    names = [name for known in MODULES.values() for name in known]
    code = "import sys; from importlib.util import find_spec; "
    code += "print(*[n for n in sys.argv[1:] if find_spec(n)])"
    command = [python, "-c", code, *names]
    done = subprocess.run(command, capture_output=True, text=True)
    return frozenset(done.stdout.split())


def programs(compiler: str, python: str, capability: int) -> Iterator[Program]:
    """All kernels that a compiler makes for a target.

    Raises `Missing` without nvcc where it needs that, `Failed` if the compiler fails.
    """
    script = FOLDER.resolve() / f"{compiler}_kernels.py"
    # Compilers leave files where they run.
    with tempfile.TemporaryDirectory() as folder:
        command = [python, str(script), str(capability)]
        made = _output(command, folder)
        known = json.loads(made.splitlines()[-1])
        for kernel in known["kernels"]:
            given = dict(kernel)
            if "source" in given:
                given |= _built(given, known["include"], capability, Path(folder))
            names = Program.__dataclass_fields__.keys() & given.keys()
            # Triton's kernels take two pointers more than they declare.
            more = 2 if compiler == "triton" else 0
            picked = {name: given[name] for name in names}
            yield Program(compiler=known["compiler"], more=more, **picked)


def _output(command: Sequence[str], folder: str | Path) -> str:
    """What a command prints. Raises `Missing` without it, `Failed` if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    except OSError as error:
        raise Missing(f"cannot run '{command[0]}': {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.splitlines() or ["failed"]
        first = next((one for one in lines if "error" in one.lower()), lines[-1])
        raise Failed(f"{Path(command[0]).name}: {first}")
    return done.stdout


def _built(
    kernel: Mapping[str, Any], include: Sequence[str], capability: int, folder: Path
) -> dict[str, Any]:
    """The PTX of a source, and what its own program says of the launch."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise Missing("no nvcc, of the CUDA toolkit, on the search path")
    path = folder / "kernel.cu"
    path.write_text(kernel["source"], "utf-8")
    target = f"{capability}{'a' if capability == 90 else ''}"
    command = [nvcc, "-std=c++17", "-w", "--expt-relaxed-constexpr"]
    command += [*(f"-I{one}" for one in include), *kernel.get("flags", ()), str(path)]
    ptx = folder / "kernel.ptx"
    if not kernel.get("says_launch"):
        _output([*command, f"-arch=sm_{target}", "-ptx", "-o", str(ptx)], folder)
        return {"ptx": ptx.read_text("utf-8")}
    # One compilation, which leaves the PTX that it puts into the program.
    code, tool = f"arch=compute_{target},code=compute_{target}", folder / "launch"
    keep = ["--keep", "--keep-dir", str(folder)]
    _output([*command, "-gencode", code, *keep, "-o", str(tool)], folder)
    said = json.loads(_output([str(tool)], folder))
    return {
        "ptx": ptx.read_text("utf-8"),
        "threads": said["threads"],
        "shared": said["shared"],
        "structure": said,
    }


def run(
    program: Program, visibility: str, schedule: str, **options: Any
) -> tuple[Result, bool]:
    """What the emulator, with `options`, says of it; whether its result is right."""
    given = launches.launch(program.name)
    others = [np.zeros(64, np.uint8) for _ in range(program.more)]
    arguments: list[Any] = [*given.arguments, *others]
    blocks = given.blocks
    if program.parameters is not None:
        by_name = dict(zip("abcd", given.arguments, strict=False))
        arguments = [_argument(one, by_name) for one in program.parameters]
    if program.structure is not None:
        arguments = [_structure(program.structure, given.arguments)]
        blocks = tuple(program.structure["grid"])
    result = emulate(
        program.ptx,
        program.entry,
        blocks,
        (program.threads, 1, 1),
        arguments,
        dynamic_shared=program.shared,
        visibility=visibility,
        schedule=schedule,
        **options,
    )
    found, bound = given.arguments[given.result], launches.BOUND
    is_right = np.allclose(found, given.expected, atol=bound, rtol=bound)
    return result, bool(is_right)


def _argument(parameter: Any, by_name: Mapping[str, Any]) -> Any:
    if isinstance(parameter, str):
        return by_name[parameter]
    array, box = by_name[parameter["array"]], parameter["box"]
    return TensorMap(array, box=box, swizzle=parameter["swizzle"])


def _structure(said: Mapping[str, Any], arrays: Sequence[Any]) -> Struct:
    """Parameters as the kernel's own program has made them, with our memory in them."""
    raw = bytes.fromhex(said["parameters"])
    members: dict[int, Any] = {}
    for number, one in enumerate(said["maps"]):
        array = arrays[(one["address"] - _ADDRESS) // _NEXT]
        shaped = array.reshape(one["sizes"][::-1])
        swizzle, box = _SWIZZLES[one["swizzle"]], one["box"][::-1]
        at = raw.index(bytes([_MAP + number]) * 128)
        members[at] = TensorMap(shaped, box=box, swizzle=swizzle)
    for number, array in enumerate(arrays):
        address = (_ADDRESS + number * _NEXT).to_bytes(8, "little")
        if address in raw:
            members[raw.index(address)] = array
    end = 0
    for at in [*sorted(members), len(raw)]:
        if at > end:
            members[end] = raw[end:at]
        end = at + (128 if isinstance(members.get(at), TensorMap) else 8)
    return Struct(len(raw), members)


def found(program: Program, modes: Sequence[tuple[str, str]] = MODES) -> Found:
    """What runs in these modes of copies and orders of warps show."""
    wrong, hazards, notes = [], list[Hazard](), set[str]()
    for mode in modes:
        result, is_right = run(program, *mode)
        if not is_right:
            wrong.append(mode)
        hazards += result.hazards
        notes |= {one.kind for one in result.notes}
    return Found(tuple(wrong), tuple(hazards), tuple(sorted(notes)))
