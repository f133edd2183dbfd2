"""LLVM's optimizer and NVPTX back end, which MLIR's bindings lack, through llvmlite.

llvmlite is imported when first needed. It has one lock for all of LLVM, as its users
may share a context. Here each text has a context of its own, and what takes long runs
without the lock: modules of different contexts may be compiled in parallel ("LLVM
Programmer's Manual", "Achieving Isolation with LLVMContext").
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from alcop_mlir.errors import CompileError, optional
from alcop_mlir.runtime import llvm_text
from alcop_mlir.target import Target

_TRIPLE = "nvptx64-nvidia-cuda"
_OPTIMIZATION_LEVEL = 3
# What needs a later version than LLVM's own for the target: mma.sync of floats of eight
# bits, PTX ISA 8.4, and on sm_89 their cvt, 8.1. Targets after sm_90 are of later ones;
# LLVM ends the process where it is told one that is too early.
_OF_F8 = r"@llvm\.nvvm\.{}\S*\be[45]m[23]"
_LATER = (
    # Tensor copies to an address of the block itself.
    (re.compile(r"@llvm\.nvvm\.cp\.async\.bulk\.tensor\.g2s\.cta"), (90,), "+ptx86"),
    (re.compile(_OF_F8.format("mma")), (89, 90), "+ptx84"),
    (re.compile(_OF_F8.format("")), (89,), "+ptx81"),
)
_ASSEMBLY = 0  # not an object file


def generate(texts: Iterable[str], target: Target, optimize: bool) -> list[str]:
    """PTX of each text of LLVM IR, in threads, as many as this process has CPUs.

    The longest first, so that no thread begins it when the others are done.
    optimize: run more than the back end. CompileError for the first that LLVM refuses.
    """
    llvmlite()  # loaded once, before threads ask for it
    given = [*texts]
    longest_first = sorted(range(len(given)), key=lambda number: -len(given[number]))
    with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as pool:
        started = {
            number: pool.submit(_generate, given[number], target, optimize)
            for number in longest_first
        }
        return [started[number].result() for number in range(len(given))]


@cache
def llvmlite() -> Any:
    """llvmlite's binding module, ready for NVPTX."""
    # Takes 40-100 ms: only when PTX is wanted.
    binding = optional("llvmlite.binding", "compiling needs llvmlite", "compiler")
    # LLVM 22's vectoriser of loads fills gaps: of three halves it loads four, the last
    # beyond the end of an array.
    binding.set_option("", "-disable-nvptx-load-store-vectorizer")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def _generate(text: str, target: Target, optimize: bool) -> str:
    binding = llvmlite()
    try:
        module = binding.parse_assembly(
            llvm_text.for_llvmlite(text), binding.create_context()
        )
        back_end = binding.Target.from_triple(_TRIPLE)
        machine = back_end.create_target_machine(
            cpu=target.name,
            features=_features(text, target),
            opt=_OPTIMIZATION_LEVEL,
            reloc="default",
            codemodel="default",
        )
        module.triple = _TRIPLE
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(
            f"LLVM refuses the kernel: {' '.join(str(error).split())}"
        ) from error
    if optimize:
        _optimize(module, machine)
    return _emit(module, machine)


def _features(text: str, target: Target) -> str:
    """The PTX version to ask for: LLVM's own, the oldest that knows the target, but
    where an intrinsic is of a later one, as a driver has to know the version.
    """
    for intrinsics, capabilities, version in _LATER:
        if target.compute_capability in capabilities and intrinsics.search(text):
            return version
    return ""


def _optimize(module: Any, machine: Any) -> None:
    """LLVM's optimizer, for code that each thread runs."""
    binding = llvmlite()
    tuning = binding.create_pipeline_tuning_options(speed_level=_OPTIMIZATION_LEVEL)
    tuning.loop_unrolling = True
    tuning.slp_vectorization = True
    # A thread is one lane of a vector already.
    tuning.loop_vectorization = False
    builder = binding.create_pass_builder(machine, tuning)
    passes = builder.getModulePassManager()
    _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)
    # Its own `close` does nothing, a slip in the order of its bases (llvmlite 0.50),
    # which would leave 170 KB behind.
    binding.newpassmanagers.NewPassManager._dispose(passes)
    passes.detach()


def _emit(module: Any, machine: Any) -> str:
    """What `TargetMachine.emit_assembly` gives, which holds llvmlite's lock."""
    ffi = llvmlite().ffi
    with ffi.OutputString() as said:
        emit = _unlocked("LLVMPY_TargetMachineEmitToMemory")
        made = emit(machine, module, _ASSEMBLY, said)
        if not made:
            raise CompileError(f"LLVM generates no code: {said}")
    try:
        size = ffi.lib.LLVMPY_GetBufferSize(made)
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(made), size).decode()
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(made)


def _unlocked(name: str) -> Any:
    """A function of llvmlite's library without the lock around it."""
    return getattr(llvmlite().ffi.lib, name)._cfn
