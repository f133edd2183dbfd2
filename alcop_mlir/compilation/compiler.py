"""Compile a module, or its text, to a bundle of kernels.

    module -> alcop-compile -> gpu.module -> PTX -> cubin -> bundle

Shared by the tools and the Python API, and independent of both.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from alcop_mlir import collector, diagnostics
from alcop_mlir.analysis.host.host_code import NotCompiled
from alcop_mlir.analysis.host.host_function import (
    described,
    host,
    host_functions,
)
from alcop_mlir.analysis.host.host_values import Names
from alcop_mlir.analysis.host.preparations import preparation, prepared
from alcop_mlir.analysis.ir.constant_arrays import ConstantArray, globals_read
from alcop_mlir.analysis.ir.symbols import name_of
from alcop_mlir.analysis.ir.updates import updated_arguments
from alcop_mlir.analysis.linalg.size_names import named_sizes
from alcop_mlir.analysis.reference import computation
from alcop_mlir.compilation.description import describe, roles_by_access
from alcop_mlir.compilation.gpu_modules import (
    gpu_modules,
    put_in_module,
    to_binaries,
)
from alcop_mlir.compilation.inputs import Input
from alcop_mlir.compilation.rank_check import check_ranks
from alcop_mlir.compilation.source_names import source_names
from alcop_mlir.diagnostics import Diagnostic
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import CompileError
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.arrays import Role
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.manifest.names import argument_name, prepared_name, result_name
from alcop_mlir.pipelines.driver import PassCrash, PassFailure, run_pipeline
from alcop_mlir.pipelines.pipeline_text import with_options
from alcop_mlir.reference.steps import Size, Step
from alcop_mlir.runtime import ptx
from alcop_mlir.runtime.bundle import Bundle, Code
from alcop_mlir.schedule import Partial, Schedule
from alcop_mlir.target import DEFAULT_TARGET, Target, find_target
from alcop_mlir.variants import DEFAULT_VARIANTS, check_most
from alcop_mlir.version import __version__


@frozen
class Options:
    """What to compile for; what is left out of the schedule the compiler chooses.

    inline_constants: in the code of kernels, where no launcher of ours gives them
    variants: most kernels of a contraction with sizes known at run time only
    chain_tiles: rows of a warp, warps, columns and parts of all chains; or chosen
    """

    target: Target = field(default_factory=lambda: find_target(DEFAULT_TARGET))
    schedule: Schedule | Partial | None = None
    use_ptxas: bool = True
    allow_tf32: bool = False
    inline_constants: bool = False
    variants: int = DEFAULT_VARIANTS
    chain_tiles: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_most(self.variants)

    def pipeline(self) -> str:
        """The pipeline string that compiles with these options."""
        schedule = "" if self.schedule is None else str(self.schedule)
        step = with_options(
            "alcop-compile",
            target=self.target.name,
            schedule=schedule,
            allow_tf32=self.allow_tf32,
            inline_constants=self.inline_constants or None,
            variants=self.variants,
            chain_tiles=self.chain_tiles or None,
        )
        return f"builtin.module({step})"


@frozen
class Lowered:
    """A module after all passes, and what lowering has erased from it.

    signatures: by function name
    own_kernels: whether the source has kernels itself, in a `gpu.module`
    """

    source: Input
    options: Options
    module: Any
    signatures: Mapping[str, _Signature]
    remarks: Sequence[Diagnostic]
    own_kernels: bool


@frozen
class _Signature:
    """A function before lowering: its arguments, its results and what it computes.

    prepared: further arguments, which another function makes of weights
    sizes: of each dimension of each array, by the array's name; names where unknown
    constants: arrays that the steps read
    source_names: of the arguments, where it was written
    updated: names of the arguments that it updates in place
    """

    arguments: int
    results: int
    steps: tuple[Step, ...]
    sizes: Mapping[tuple[str, int], Size]
    constants: tuple[ConstantArray, ...] = ()
    source_names: Sequence[str] = ()
    updated: Sequence[str] = ()
    prepared: int = 0

    def names(self) -> Names:
        """What the compiled function's arrays and sizes are called."""
        arguments = (argument_name(number) for number in range(self.arguments))
        prepared = (prepared_name(number) for number in range(self.prepared))
        return Names((*arguments, *prepared, *self.result_names), self.sizes)

    @property
    def result_names(self) -> list[str]:
        """What its results are called, which are its last arguments."""
        return [result_name(number, self.results) for number in range(self.results)]

    def roles(self, names: Iterable[str]) -> dict[str, Role]:
        """Whether the function reads each array's contents, writes it, or both."""
        first: dict[str, Role] = {}
        for step in self.steps:
            for name in step.reads:
                first.setdefault(name, "in")
            first.setdefault(step.out, "out")
        written = {step.out for step in self.steps}
        unused: dict[str, Role] = dict.fromkeys(self.result_names, "out")
        return {
            name: "inout"
            if name in written and first[name] == "in"
            else first.get(name, unused.get(name, "in"))
            for name in names
        }


def compile_source(source: Input, options: Options) -> Bundle:
    """Compile `source` to a bundle; its module is not modified.

    Remarks of passes go to stderr. Raises CompileError, PassFailure or ConfigError.
    """
    return pack(lower(source, options))


def lower(source: Input, options: Options) -> Lowered:
    """Run all passes on a copy of the module. Raises PassCrash or CompileError."""
    module = source.module.operation.clone()
    put_in_module(module)
    own_kernels = bool(gpu_modules(module))
    with diagnostics.collect() as remarks, collector.paused():
        try:
            run_pipeline(module, "builtin.module(alcop-box-scalars)")
            for func in host_functions(module):
                check_ranks(func)
            signatures = {
                name_of(func): replace(
                    _signature(func, options), source_names=source_names(func, source)
                )
                for func in host_functions(module)
            }
            run_pipeline(module, options.pipeline())
        except PassCrash:
            raise
        except PassFailure as failure:
            messages = [f"{d.place()}: {d.message}" for d in failure.diagnostics]
            raise CompileError(messages[0] if messages else str(failure)) from None
    signatures |= _with_prepared(module, signatures)
    return Lowered(source, options, module, signatures, remarks, own_kernels)


def kernels(lowered: Lowered) -> dict[str, Code]:
    """PTX and cubins by `gpu.module`, whatever becomes of the host's part.

    Raises CompileError as `pack` does where the source has no kernels of its own.
    """
    if not lowered.own_kernels:
        return dict(pack(lowered).code)
    _print_remarks(lowered)
    return _assemble(lowered)[0]


def binaries(lowered: Lowered) -> str:
    """The module with a `gpu.binary` for each `gpu.module`; see `kernels`."""
    module = lowered.module.clone()
    to_binaries(module, kernels(lowered))
    return f"{module}\n"


def pack(lowered: Lowered) -> Bundle:
    """PTX, cubins, and how to launch them. Raises CompileError if an op is left that
    no kernel computes, or if a kernel exceeds the target's limits.
    """
    found: list[Function] = []
    data: dict[str, bytes] = {}
    for func in host_functions(lowered.module):
        signature = lowered.signatures[name_of(func)]
        function = host(func, signature.names())
        if not isinstance(function, Function):
            raise _not_compiled(function)
        # Without a launch there may be something to compute, all of it of no element.
        is_empty = any(0 in array.shape for array in function.parameters)
        if function.launches or signature.steps or is_empty:
            found.append(_with_constants(prepared(func, function), signature))
            arrays = (*globals_read(func).values(), *signature.constants)
            held = {one.name: one.file for one in found[-1].constants}
            data |= {held[one.name]: one.data for one in arrays if one.name in held}
    _print_remarks(lowered)
    if not found and lowered.own_kernels:
        raise CompileError(
            "nothing to store: no function launches the kernels of this gpu.module; "
            "'alcop-compile --emit ptx' gives their PTX, 'alcop-run --launch' runs one"
        )
    if not found:
        raise CompileError("nothing to compile: no function computes anything")
    code, statistics = _assemble(lowered)
    functions = tuple(_described(one, lowered, statistics) for one in found)
    for function in functions:
        for kernel in function.kernels:
            check_limits(kernel, lowered.options.target)
    return Bundle(
        target=lowered.options.target,
        compiler=f"alcop_mlir {__version__}",
        source_hash=_hash(lowered),
        functions=functions,
        code=code,
        data=data,
    )


def _with_constants(function: Function, signature: _Signature) -> Function:
    """`function` with the constants that its reference reads."""
    found = (*function.constants, *map(described, signature.constants))
    return replace(function, constants=tuple(dict.fromkeys(found)))


def check_limits(kernel: Kernel, target: Target) -> None:
    """Raise CompileError if one block of `kernel` exceeds the limits of `target`."""
    threads = math.prod(kernel.block)
    for what, needed, available in (
        ("threads", threads, target.threads_per_block),
        (
            "bytes of shared memory",
            kernel.shared_bytes + (kernel.static_shared_bytes or 0),
            target.shared_bytes_per_block,
        ),
        ("registers", threads * (kernel.registers or 0), target.registers_per_sm),
    ):
        if needed > available:
            raise CompileError(
                f"kernel '{kernel.name}' needs {needed} {what} per block, "
                f"{target.name} has {available}: smaller tiles or fewer stages"
            )


def _signature(func: Any, options: Options) -> _Signature:
    found = computation.computation(func, options.allow_tf32)
    block = func.regions[0].blocks[0]
    names = {
        argument: argument_name(number)
        for number, argument in enumerate(block.arguments)
    }
    updates = updated_arguments(func)
    returned = [
        value
        for number, value in enumerate(block.operations[-1].operation.operands)
        if number not in updates
    ]
    for number, value in enumerate(returned):
        names.setdefault(value, result_name(number, len(returned)))
    sizes = named_sizes(func, names)
    return _Signature(
        len(block.arguments),
        len(returned),
        found.steps,
        sizes,
        found.constants,
        updated=[argument_name(number) for number in updates.values()],
    )


def _with_prepared(
    module: Any, signatures: Mapping[str, _Signature]
) -> dict[str, _Signature]:
    """The signatures of functions with weights, and of those that prepare these."""
    found: dict[str, _Signature] = {}
    for func in host_functions(module):
        given = preparation(func)
        if given is not None:
            whole = signatures[name_of(func)]
            found[name_of(func)] = replace(whole, prepared=given.arrays)
            names = [whole.source_names[number] for number in given.weights]
            found[given.function] = _Signature(
                len(given.weights), given.arrays, (), {}, source_names=names
            )
    return found


def _not_compiled(found: Sequence[NotCompiled]) -> CompileError:
    """The first obstacle that a pass gave a reason for, else the first."""
    known = next((one for one in found if alcop.reason(one.op)), found[0])
    why = alcop.reason(known.op)
    place = diagnostics.at(known.op.location, "error", "").place()
    return CompileError(f"{place}: {known.reason}" + (f": {why}" if why else ""))


def _print_remarks(lowered: Lowered) -> None:
    """Each once: several variants of an op may give the same."""
    for remark in dict.fromkeys(lowered.remarks):
        print(remark, file=sys.stderr)


def _assemble(lowered: Lowered) -> tuple[dict[str, Code], dict[str, ptx.Cubin]]:
    """Machine code and, where ptxas is installed, its statistics, by module."""
    code: dict[str, Code] = {}
    statistics: dict[str, ptx.Cubin] = {}
    target = lowered.options.target
    modules = gpu_modules(lowered.module)
    for op, text in zip(modules, ptx.emit_all(modules, target), strict=True):
        cubin = ptx.assemble(text, target) if lowered.options.use_ptxas else None
        code[name_of(op)] = Code(text, None if cubin is None else cubin.data)
        if cubin is not None:
            statistics[name_of(op)] = cubin
    return code, statistics


def _described(
    function: Function, lowered: Lowered, statistics: Mapping[str, ptx.Cubin]
) -> Function:
    signature = lowered.signatures[function.name]
    roles = signature.roles(one.name for one in function.parameters)
    if not signature.steps:  # then only that results are written is known of them
        results: dict[str, Role] = {n: "out" for n in roles if roles[n] == "out"}
        updated: dict[str, Role] = {name: "inout" for name in signature.updated}
        roles = results | roles_by_access(function, lowered.module) | updated
    found = describe(function, roles, signature.steps, statistics)
    names = itertools.chain(signature.source_names, itertools.repeat(""))
    named = zip(found.parameters, names, strict=False)
    return replace(
        found, parameters=tuple(replace(one, source_name=n) for one, n in named)
    )


def _hash(lowered: Lowered) -> str:
    made_from = [
        __version__,
        lowered.options.pipeline(),
        hashlib.sha256(lowered.source.text).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()
