"""From a lowered `gpu.module` to PTX, and from PTX to a cubin.

`emit_ptx`: MLIR's translation to LLVM IR, then LLVM (`nvptx.py`), each kernel apart and
in parallel. The same module gives the same text.
`assemble`: ptxas, in parallel as well, where there is one: `ALCOP_PTXAS`, else the one
of the wheel nvidia-cuda-nvcc, else the one on PATH. Of itself it gives a kernel fewer
registers than there are, so that more blocks fit an SM, even where it then spills: such
kernels are assembled again without that wish.

No other module of the runtime imports MLIR.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from alcop_mlir import knobs
from alcop_mlir.bindings import ir, translate_to_llvm_ir
from alcop_mlir.errors import CompileError
from alcop_mlir.frozen import frozen
from alcop_mlir.runtime import nvptx
from alcop_mlir.runtime.ptx_parts import join
from alcop_mlir.target import MAX_REGISTERS_PER_THREAD, SHARED_SPACE, Target

_EXTERNAL_FUNCTION = re.compile(r"^\s*\.extern \.func\b[^;]*?([\w$.]+)\s*\(?\s*$", re.M)
# Functions that the driver provides to every kernel.
_PROVIDED = ("vprintf", "__assertfail", "malloc", "free")
_ENTRY = "Compiling entry function "  # begins what ptxas says of a kernel
_ENTRY_DIRECTIVE = ".visible .entry "
_ENTRY_LIMITS = re.compile(r"\.entry ([\w$.]+)\(.*?\n(?=\{)", re.DOTALL)
# Of an entry: ptxas then takes the registers that leave room for one block on an SM.
_ONE_BLOCK = ".minnctapersm 1\n"
_PARALLEL = "--split-compile"
_PTXAS_THREADS = 8  # not the number of CPUs: a cubin holds the options
_PTXAS_SECONDS = 300  # far beyond any kernel seen: a hang is reported, not waited for


@frozen
class Cubin:
    """What ptxas made, and its statistics: the maximum over all kernels in it."""

    data: bytes
    registers: int  # per thread
    spill_bytes: int  # stores and loads
    shared_bytes: int  # static; dynamic shared memory is asked for at launch
    stack_bytes: int  # per thread
    log: str


def emit_ptx(gpu_module: Any, target: Target, *, optimize: bool = True) -> str:
    """PTX of one module; see `emit_all`.

    Without `optimize` the back end alone runs, in less than half the time: for a
    program that shall only be right.
    """
    return emit_all([gpu_module], target, optimize=optimize)[0]


def emit_all(
    gpu_modules: Iterable[Any], target: Target, *, optimize: bool = True
) -> list[str]:
    """PTX of each `gpu.module`, which hold llvm and nvvm ops only.

    CompileError where LLVM refuses one, or leaves a call to an undefined function: an
    intrinsic that it does not know, or a function of libdevice.
    """
    texts = [_texts(module.operation) for module in gpu_modules]
    generated = iter(nvptx.generate(chain(*texts), target, optimize))
    found = [join([*islice(generated, len(some))]) for some in texts]
    for ptx in found:
        _check_externals(ptx)
    return found


def assemble(ptx: str, target: Target) -> Cubin | None:
    """The cubin of `ptx`; None where there is no ptxas. CompileError if it refuses."""
    ptxas = find_ptxas()
    if ptxas is None:
        return None
    found = _assembled(ptx, target, ptxas)
    if not found.spill_bytes:
        return found
    frugal = _with_more_registers(ptx, found)
    return found if frugal == ptx else _assembled(frugal, target, ptxas)


def _is_needless(cubin: Cubin) -> bool:
    """Whether something spills though there are registers left."""
    has_some = cubin.registers < MAX_REGISTERS_PER_THREAD - 1  # they come in pairs
    return has_some and cubin.spill_bytes > 0


def _with_more_registers(ptx: str, cubin: Cubin) -> str:
    """`ptx`, in which kernels that spill needlessly ask for room for one block only."""

    def limits(entry: re.Match[str]) -> str:
        spills = _is_needless(of_kernel(cubin, entry[1]))
        return entry[0] + _ONE_BLOCK if spills else entry[0]

    return _ENTRY_LIMITS.sub(limits, ptx)


def _assembled(ptx: str, target: Target, ptxas: Path) -> Cubin:
    with tempfile.TemporaryDirectory(prefix="alcop-") as folder:
        source, result = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(ptx, encoding="utf-8")
        options = [f"-arch={target.name}", "-O3", "-v", "-o", str(result), str(source)]
        if ptx.count(_ENTRY_DIRECTIVE) > 1 and _is_parallel(ptxas):
            options.append(f"{_PARALLEL}={_PTXAS_THREADS}")
        try:
            done = subprocess.run(
                [str(ptxas), *options],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_PTXAS_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError(f"cannot run {ptxas}: {error}") from error
        log = (done.stdout + done.stderr).replace(str(source), source.name)
        if done.returncode != 0:
            raise CompileError(f"ptxas: {_first_error(log)}")
        if not result.is_file():
            raise CompileError(f"{ptxas} made no cubin, is it ptxas?")
        return _cubin(result.read_bytes(), log)


def find_ptxas() -> Path | None:
    """The ptxas to use, or None. CompileError if `ALCOP_PTXAS` does not exist."""
    asked = knobs.ptxas()
    if asked is not None:
        if shutil.which(asked) is None:
            raise CompileError(f"ALCOP_PTXAS is '{asked}', which is no program")
        return Path(asked)
    on_path = shutil.which("ptxas")
    return _ptxas_in_wheel() or (None if on_path is None else Path(on_path))


@cache
def _is_parallel(ptxas: Path) -> bool:
    """Whether it compiles several kernels at a time: older ones do not."""
    try:
        said = subprocess.run(
            [str(ptxas), "--help"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PTXAS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False  # said where it compiles
    return _PARALLEL in said.stdout


@cache
def _ptxas_in_wheel() -> Path | None:
    """nvidia/cu13/bin/ptxas, or nvidia/cuda_nvcc/bin/ptxas in older wheels."""
    package = importlib.util.find_spec("nvidia")
    folders = (package.submodule_search_locations or []) if package else []
    found = (path for folder in folders for path in Path(folder).glob("*/bin/ptxas"))
    return max(found, default=None)


def _check_lowered(gpu_module: Any) -> None:
    """Refuse ops that the translation does not support: they crash the process."""
    left: list[str] = []

    def visit(op: Any) -> Any:
        if op.name.startswith(("llvm.", "nvvm.")) or op == gpu_module:
            return ir.WalkResult.ADVANCE
        left.append(op.name)
        return ir.WalkResult.INTERRUPT

    gpu_module.walk(visit, ir.WalkOrder.PRE_ORDER)
    if left:
        name = ir.StringAttr(gpu_module.attributes["sym_name"]).value
        raise CompileError(
            f"'{left[0]}' in gpu.module @{name} is not lowered: run alcop-lower-to-nvvm"
        )


def _texts(module: Any) -> list[str]:
    """LLVM IR of the kernels of a module."""
    _check_lowered(module)
    with module.context:
        return [translate_to_llvm_ir(part) for part in _parts(module)]


def _parts(module: Any) -> list[Any]:
    """Modules of a kernel each; `module` itself if its kernels share more than the
    shared memory that a launch sizes.

    LLVM takes longer for each kernel where there are many in a module.
    """
    ops = [op.operation for op in module.regions[0].blocks[0].operations]
    kernels = [op for op in ops if "nvvm.kernel" in op.attributes]
    others = [op for op in ops if "nvvm.kernel" not in op.attributes]
    if len(kernels) <= 1 or not all(map(_is_dynamic, others)):
        return [module]
    parts: list[Any] = []
    for kernel in kernels:
        with module.location:
            part = ir.Operation.parse("gpu.module @part {}")
        for op in (*others, kernel):
            part.regions[0].blocks[0].append(op.clone(ip=False))
        parts.append(part)
    return parts


def _is_dynamic(op: Any) -> bool:
    """Whether it declares shared memory that the launch sizes."""
    return (
        op.name == "llvm.mlir.global"
        and str(op.attributes["linkage"]) == "#llvm.linkage<external>"
        and op.attributes["addr_space"].value == SHARED_SPACE
    )


def _check_externals(ptx: str) -> None:
    for match in _EXTERNAL_FUNCTION.finditer(ptx):
        name = match[1]
        if name.startswith("llvm."):
            raise CompileError(f"LLVM does not know the intrinsic '{name}'")
        if name not in _PROVIDED:
            raise CompileError(
                f"the kernel calls '{name}', which is defined nowhere: expected it "
                "lowered to instructions"
            )


def _cubin(data: bytes, log: str) -> Cubin:
    stores = _numbers(r"(\d+) bytes spill stores", log)
    loads = _numbers(r"(\d+) bytes spill loads", log)
    return Cubin(
        data=data,
        registers=max(_numbers(r"Used (\d+) registers", log), default=0),
        spill_bytes=max((s + n for s, n in zip(stores, loads, strict=True)), default=0),
        shared_bytes=max(_numbers(r"(\d+) bytes smem", log), default=0),
        stack_bytes=max(_numbers(r"(\d+) bytes stack frame", log), default=0),
        log=log,
    )


def of_kernel(cubin: Cubin, name: str) -> Cubin:
    """ptxas's statistics of one kernel of `cubin`, which may hold several."""
    _, found, rest = cubin.log.partition(f"{_ENTRY}'{name}'")
    return _cubin(cubin.data, rest.partition(_ENTRY)[0]) if found else cubin


def _numbers(pattern: str, log: str) -> list[int]:
    return [int(number) for number in re.findall(pattern, log)]


def _first_error(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line or "fatal" in line]
    return (wrong or lines or ["failed without a message"])[0]
