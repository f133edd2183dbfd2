"""What a function's description in a bundle says besides what its host code does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from alcop_mlir.analysis.ir.symbols import is_kernel, name_of, top_level
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import ACCUMULATORS
from alcop_mlir.errors import CompileError
from alcop_mlir.manifest.arrays import DTYPES, Parameter, Role
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Kernel, Launch, Pointer
from alcop_mlir.reference.steps import Einsum, Step
from alcop_mlir.runtime.ptx import Cubin, of_kernel


def describe(
    function: Function,
    roles: Mapping[str, Role],
    steps: Sequence[Step],
    statistics: Mapping[str, Cubin],
) -> Function:
    """`function` with roles, reference, and what ptxas says of its kernels.

    roles:      by array; "in" for others
    statistics: by module, for those that ptxas assembled

    Raises CompileError for arrays that no caller can pass.
    """
    for number, parameter in enumerate(function.parameters):
        _check_dtype(function, number, parameter)
    return replace(
        function,
        parameters=tuple(
            replace(one, role=roles.get(one.name, "in")) for one in function.parameters
        ),
        launches=tuple(_measured(launch, statistics) for launch in function.launches),
        reference=_reference(steps, function.launches),
    )


def _check_dtype(function: Function, number: int, parameter: Parameter) -> None:
    if parameter.dtype not in DTYPES:
        raise CompileError(
            f"argument {number + 1} of '{function.name}' has {parameter.dtype} "
            f"elements, expected one of {', '.join(DTYPES)}"
        )


def _measured(launch: Launch, statistics: Mapping[str, Cubin]) -> Launch:
    return Launch(
        tuple(
            replace(
                one, kernels=tuple(_with_resources(k, statistics) for k in one.kernels)
            )
            for one in launch.variants
        )
    )


def _with_resources(kernel: Kernel, statistics: Mapping[str, Cubin]) -> Kernel:
    if kernel.module not in statistics:
        return kernel
    found = of_kernel(statistics[kernel.module], kernel.name)
    return replace(
        kernel,
        registers=found.registers,
        spill_bytes=found.spill_bytes,
        static_shared_bytes=found.shared_bytes,
    )


def _reference(steps: Sequence[Step], launches: Sequence[Launch]) -> tuple[Step, ...]:
    """The steps; contractions on tensor cores accumulate in f32 at least."""
    contractions = sum(isinstance(step, Einsum) for step in steps)
    if sum(map(_contractions, launches)) < contractions:
        return tuple(steps)
    return tuple(
        replace(step, sums=ACCUMULATORS[step.sums])
        if isinstance(step, Einsum) and step.sums in ACCUMULATORS
        else step
        for step in steps
    )


def _contractions(launch: Launch) -> int:
    """Contractions on tensor cores, in the variant that has the fewest."""
    return min(
        sum(kernel.schedule is not None for kernel in variant.kernels)
        for variant in launch.variants
    )


def roles_by_access(function: Function, module: ir.Operation) -> dict[str, Role]:
    """The roles of arrays, by their names, as the kernels use them.

    An array is "out" if its initial contents are not read: the first kernel that takes
    it only writes it, in all variants.
    """
    access = {
        name_of(op): _access(op)
        for kernels in top_level(module, "gpu.module")
        for op in top_level(kernels)
        if is_kernel(op)
    }
    found: dict[str, Role] = {}
    for launch in function.launches:
        ways = [_after(found, one.kernels, access) for one in launch.variants]
        names = dict.fromkeys(name for way in ways for name in way)
        found = {name: _either({way.get(name) for way in ways}) for name in names}
    return found


def _after(
    before: Mapping[str, Role],
    kernels: Sequence[Kernel],
    access: Mapping[str, Sequence[Role]],
) -> dict[str, Role]:
    """The roles of arrays after these kernels; `access`: of their parameters."""
    found = dict(before)
    for kernel in kernels:
        for argument, role in zip(kernel.arguments, access[kernel.name], strict=False):
            if isinstance(argument, Pointer):
                found[argument.array] = _joined(found.get(argument.array), role)
    return found


def _either(roles: Collection[Role | None]) -> Role:
    """The role of an array that has one of these; None is one that is not used."""
    known = set(roles) - {None}
    if len(known) == 1 and (None not in roles or known == {"in"}):
        (role,) = known
        return role or "in"
    return "inout"


def _access(kernel: ir.Operation) -> list[Role]:
    """Per parameter of a kernel: "in" where it is only read, "out" only written."""
    if "arg_attrs" not in kernel.attributes:  # as of a kernel without parameters
        return ["inout"] * len(kernel.regions[0].blocks[0].arguments)
    roles: list[Role] = []
    for one in map(ir.DictAttr, kernel.attributes["arg_attrs"]):
        written: Role = "out" if "llvm.writeonly" in one else "inout"
        roles.append("in" if "llvm.readonly" in one else written)
    return roles


def _joined(before: Role | None, then: Role) -> Role:
    """The role of an array with the role `before`, and in a later kernel `then`."""
    if before in (None, then):
        return then
    return "out" if before == "out" else "inout"
