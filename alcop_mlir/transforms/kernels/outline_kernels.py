"""Outline each `gpu.launch` to a kernel with the ABI of docs/architecture.md.

Before:  func.func @f(%A: memref<64x32xf16>) {
           gpu.launch blocks(...) threads(...) { %s = memref.alloc() ... use(%A, %s) } }
After:   gpu.module @f_kernels { gpu.func @f(%p: memref<1xf16>) kernel {
           %A = memref.reinterpret_cast %p to ... memref<64x32xf16>
           %s = memref.view %dynamic_shared_memory[%offset][] ... use(%A, %s) } }
         gpu.launch_func @f_kernels::@f ... dynamic_shared_memory_size ... args(...)

The kernel's parameters are a pointer per memref that it uses, in the order of the
function's arguments; then, memref by memref, the dynamic sizes, and the strides that
follow neither from the type nor from the sizes; then scalars; sizes, strides and index
scalars as i64; last the tensor maps, 128 bytes each, by value. Constants, index
arithmetic and views of the host are computed again inside. A constant `memref.global`
of unequal elements and more than 64 bytes is an argument of the kernels that read it,
and a bundle stores its bytes; others that kernels read are copied into the
`gpu.module`.
Shared buffers become parts of one dynamic block, each at a multiple of 128 bytes, in
the order of their allocations: `resources.shared_bytes` counts the same. Those marked
`alcop.overlaid` overlay the others, from the beginning on; those with equal numbers
`alcop.shares` begin at the same address.

A kernel is named after its function; where that has several kernels, `alcop.kernel` of
the launch follows (`f_matmul`), and a number where a name is taken. A function that
alcop-merge-launches has made becomes a kernel of the first function that calls it, and
the calls become its launches; pipelines name the buffers of the caller.

Pointers are `llvm.align = 16`, or what `alcop.alignment` says of an argument that may
begin elsewhere; they are `llvm.readonly` where the
kernel only reads, `llvm.writeonly` where it only writes, and `llvm.noalias` where the
option says that memrefs do not overlap. An unsupported launch is an error: no later
pass could lower it.

Runs after all passes that change the body of a launch, and before alcop-lower-to-nvvm,
whose conversions run on `gpu.module`s. Reads `alcop.kernel`, `alcop.overlaid`,
`alcop.shares`, `alcop.schedule`, `alcop.schedule_source`, `alcop.pipelines` and
`alcop.fallback`, which are erased with the launch. Writes the last four on the
`gpu.launch_func` as one plain dictionary, `alcop.decisions`, from which the kernel is
described; `alcop.tensor_map` on parameters. Erases functions with `alcop.merged`, the
`alcop.row_alignment` of what is no argument, and the assumptions that have it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from alcop_mlir.analysis.host import launches
from alcop_mlir.analysis.host.launches import KernelLaunch
from alcop_mlir.analysis.ir.alignment import base_alignment
from alcop_mlir.analysis.ir.constant_arrays import stored_global
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.ir.memref_layouts import open_strides
from alcop_mlir.analysis.ir.promises import ROW_ALIGNMENT
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.symbols import by_name, name_of, top_level, unused_name
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import arith, gpu, ir, memref
from alcop_mlir.dialects import alcop
from alcop_mlir.dialects.values import to_attribute
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.target import TENSOR_MAP_ALIGNMENT
from alcop_mlir.transforms.kernels.constant_buffers import (
    check_only_read,
    copy_constants,
    move_outside,
)
from alcop_mlir.transforms.kernels.launch_buffers import move_buffers_inside
from alcop_mlir.transforms.kernels.merged_launches import (
    inline_calls,
    launches_of,
    merged_functions,
)
from alcop_mlir.transforms.pipelining.slot_views import view_slots
from alcop_mlir.transforms.tiling.thread_points import KERNEL

_POINTER = "!llvm.ptr"
_RESERVED = ("WARP_SZ",)  # PTX's one constant that looks like an identifier


@frozen
class OutlineKernels(Pass):
    name = "alcop-outline-kernels"
    anchor = "builtin.module"

    noalias: bool = option(False, "promise that memrefs of a kernel do not overlap")
    inline_constants: bool = option(False, "copy all constants into the gpu.module")

    def run(self, op: ir.Operation) -> None:
        constants = by_name(op, "memref.global")
        given = {} if self.inline_constants else constants
        stored = {name for name, op in given.items() if stored_global(op) is not None}
        every = top_level(op, "func.func")
        for function in every:
            _drop_promises(function)
            move_buffers_inside(function, walk(function, "gpu.launch"))
        merged = merged_functions(op)
        functions = [one for one in every if name_of(one) not in merged]
        symbols = {
            name_of(one) for one in top_level(op) if "sym_name" in one.attributes
        }
        kernel_names: set[str] = set()
        for function, found, number in _work(functions, merged):
            if not found:
                continue
            op.attributes["gpu.container_module"] = ir.UnitAttr.get()
            name = name_of(function)
            own = unused_name(f"{_identifier(name)}_kernels", symbols)
            kernels = _kernel_module(op, function, own)
            for launch in found:
                kernel = unused_name(_kernel_name(name, launch, number), kernel_names)
                _outline(_checked(launch, stored), kernels, kernel, self.noalias)
            copy_constants(constants, kernels)
        for function in functions:
            inline_calls(function, merged)
        for function in merged.values():
            function.erase()


def _work(
    functions: Iterable[ir.Operation], merged: Mapping[str, Any]
) -> list[tuple[Any, list[Any], int]]:
    """The functions; which launches each is the first to make; how many it makes."""
    work: list[tuple[Any, list[Any], int]] = []
    known: set[Any] = set()
    for function in functions:
        every = launches_of(function, merged)
        new = [one for one in dict.fromkeys(every) if one not in known]
        work.append((function, new, len(every)))
        known.update(every)
    return work


def _drop_promises(function: ir.Operation) -> None:
    """Erase what guards promised of rows, so that equal kernels are equal."""
    for op in walk(function, "memref.assume_alignment", "memref.alloc"):
        if ROW_ALIGNMENT not in op.attributes:
            continue
        del op.attributes[ROW_ALIGNMENT]
        if op.name == "memref.assume_alignment":
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _kernel_name(function: str, launch: ir.Operation, number: int) -> str:
    """The name of the kernel of one of `number` launches of the function."""
    if number == 1 or KERNEL not in launch.attributes:
        return _identifier(function)
    return _identifier(f"{function}_{launch.attributes[KERNEL].value}")


def _outline(
    launch: KernelLaunch, kernels: ir.Operation, name: str, noalias: bool
) -> None:
    with launch.op.location:
        _make_kernel(launch, kernels, name, noalias)
        _launch_kernel(launch, kernels, name)
    launch.op.erase()
    edit.erase_unused(reversed(launch.sunk))


def _checked(op: ir.Operation, stored: Collection[str]) -> KernelLaunch:
    if stored:
        move_outside(op, stored)
        check_only_read(op, stored)
    answer = launches.read(op, stored)
    if isinstance(answer, Rejected):
        raise PassError(answer.op, f"'{answer.op.name}' {answer.reason}")
    return answer


def _kernel_module(module: ir.Operation, function: ir.Operation, name: str) -> Any:
    """An empty `gpu.module` just after the function."""
    with ir.InsertionPoint(module.regions[0].blocks[0]), function.operation.location:
        kernels = gpu.GPUModuleOp(name)
    kernels.regions[0].blocks.append()
    kernels.operation.move_after(function.operation)
    return kernels


def _make_kernel(
    launch: KernelLaunch, kernels: ir.Operation, name: str, noalias: bool
) -> None:
    block = kernels.regions[0].blocks[0]
    kinds = [buffer.type for buffer in launch.memrefs]
    dynamic = ir.ShapedType.get_dynamic_size()
    left_open = sum(
        kind.shape.count(dynamic) + len(open_strides(kind)) for kind in kinds
    )
    inputs = [
        *map(_pointer_type, kinds),
        *[build.integer(64)] * left_open,
        *(_parameter_type(scalar.type) for scalar in launch.scalars),
        *[ir.Type.parse(_POINTER)] * len(launch.maps),
    ]
    with ir.InsertionPoint(block):
        kernel = gpu.GPUFuncOp(
            ir.FunctionType.get(inputs, []),
            name,
            known_block_size=launch.block,
            known_grid_size=launch.static_grid,
        )
    if launch.cluster is not None:
        kernel.attributes["known_cluster_size"] = build.numbers(launch.cluster)
    # The builder's own `kernel=True` writes `gpu.kernel`, which the op does not read.
    kernel.attributes["kernel"] = ir.UnitAttr.get()
    entry = kernel.add_entry_block()
    with ir.InsertionPoint(entry):
        mapping = _inside(launch, list(entry.arguments))
        _move_body(launch, kernel, mapping)
    pointers = zip(entry.arguments, launch.memrefs, strict=False)
    attributes = [_pointer_attributes(one, of, noalias) for one, of in pointers]
    attributes += [{}] * (len(inputs) - len(attributes) - len(launch.maps))
    attributes += [_map_attributes()] * len(launch.maps)
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(
        list(map(ir.DictAttr.get, attributes))
    )


def _inside(launch: KernelLaunch, parameters: list[Any]) -> dict[Any, Any]:
    """Host values that the body uses, to their counterparts in the kernel."""
    remaining = iter(parameters)
    pointers = [next(remaining) for _ in launch.memrefs]
    mapping: dict[Any, Any] = {}
    for buffer, pointer in zip(launch.memrefs, pointers, strict=True):
        mapping[buffer] = _shaped(buffer.type, pointer, remaining)
    for scalar in launch.scalars:
        mapping[scalar] = _cast(next(remaining), scalar.type)
    for tensor_map, parameter in zip(launch.maps, remaining, strict=True):
        mapping[tensor_map] = build.unrealized(tensor_map.type, parameter)
    for op in launch.sunk:
        edit.clone(op, mapping)
    return mapping


def _shaped(kind: ir.Type, pointer: ir.Value, parameters: Iterator[Any]) -> Any:
    """`pointer` as a memref of type `kind`; its dynamic numbers from `parameters`."""
    if kind == pointer.type:
        return pointer
    index = ir.IndexType.get()
    extents = [
        _cast(next(parameters), index) if kind.is_dynamic_dim(number) else None
        for number in range(kind.rank)
    ]
    strides = _strides(kind, extents)
    for number in open_strides(kind):
        strides[number] = _cast(next(parameters), index)
    return build.reinterpreted(
        kind,
        pointer,
        [extent for extent in extents if extent is not None],
        [stride for stride in strides if stride is not None],
    )


def _strides(kind: ir.Type, extents: list[Any]) -> list[Any]:
    """Per dimension the stride as a value where it follows from the extents."""
    static, _ = kind.get_strides_and_offset()
    strides: list[Any] = [None] * kind.rank
    if open_strides(kind):
        return strides
    for number in reversed(range(kind.rank - 1)):
        if kind.is_dynamic_stride_or_offset(static[number]):
            inner, extent = strides[number + 1], extents[number + 1]
            strides[number] = build.mul(
                static[number + 1] if inner is None else inner,
                kind.shape[number + 1] if extent is None else extent,
            )
    return strides


def _move_body(
    launch: KernelLaunch, kernel: ir.Operation, mapping: dict[ir.Value, ir.Value]
) -> None:
    """Give the launch's blocks to the kernel."""
    entry = kernel.regions[0].blocks[0]
    blocks = list(launch.op.regions[0].blocks)
    _replace_ids(launch, list(blocks[0].arguments))
    _replace_buffers(launch)
    edit.move_ops(blocks[0], entry)
    for block in blocks[1:]:
        block.append_to(kernel.regions[0])
    for block in kernel.regions[0].blocks:
        for op in list(block.operations):
            edit.remap(op, mapping)
            if op.operation.name == "gpu.terminator":
                with ir.InsertionPoint(op), op.operation.location:
                    gpu.ReturnOp([])
                op.operation.erase()


def _replace_ids(launch: KernelLaunch, arguments: list[Any]) -> None:
    """Replace ids and sizes of the launch by the ops that read them in a kernel."""
    axes = [gpu.Dimension.x, gpu.Dimension.y, gpu.Dimension.z]
    grid = launch.static_grid
    makers = [
        *(partial(gpu.block_id, axis) for axis in axes),
        *(partial(gpu.thread_id, axis) for axis in axes),
        *(partial(gpu.grid_dim, axis) for axis in axes if grid is None),
        *(partial(build.index, size) for size in grid or ()),
        *(partial(build.index, size) for size in launch.block),
    ]
    if launch.cluster is not None:
        makers += [partial(gpu.cluster_id, axis) for axis in axes]
        makers += [partial(build.index, size) for size in launch.cluster]
    for argument, make in zip(arguments, makers, strict=True):
        if list(argument.uses):
            argument.replace_all_uses_with(make())


def _name_memory_space(launch: KernelLaunch) -> None:
    """Give memrefs in shared memory the space's name where they have its number."""
    space = ir.Attribute.parse(build.WORKGROUP)
    for op in walk(launch.op):
        inside = [block for region in op.regions for block in region.blocks]
        values = [
            *op.results,
            *(value for block in inside for value in block.arguments),
        ]
        for value in values:
            kind = value.type
            if is_workgroup(kind) and kind.memory_space != space:
                value.set_type(
                    ir.MemRefType.get(kind.shape, kind.element_type, kind.layout, space)
                )


def _replace_buffers(launch: KernelLaunch) -> None:
    """Replace allocations by views of the dynamic shared memory."""
    if not launch.buffers:
        return
    _name_memory_space(launch)
    dynamic = ir.ShapedType.get_dynamic_size()
    memory = gpu.dynamic_shared_memory(
        build.workgroup_memref([dynamic], build.integer(8))
    )
    for buffer in launch.buffers:
        old = buffer.alloc.results[0]
        with buffer.alloc.location:
            new = memref.view(old.type, memory, build.index(buffer.offset), [])
            view_slots(old, memory, buffer.offset)
        edit.erase_deallocs(old)
        old.replace_all_uses_with(new)
        buffer.alloc.erase()


def _launch_kernel(launch: KernelLaunch, kernels: ir.Operation, name: str) -> None:
    """Build the `gpu.launch_func` in the host function, before the launch."""
    with ir.InsertionPoint(launch.op):
        operands = [_pointer(buffer) for buffer in launch.memrefs]
        for buffer in launch.memrefs:
            numbers = (*build.dynamic_sizes(buffer), *_open_strides(buffer))
            operands.extend(map(_to_parameter, numbers))
        operands.extend(map(_to_parameter, launch.scalars))
        pointer = ir.Type.parse(_POINTER)
        operands.extend(build.unrealized(pointer, one) for one in launch.maps)
        made = gpu.LaunchFuncOp(
            [name_of(kernels), name],
            launch.grid,
            tuple(launch.op.operands)[3:6],
            operands,
            dynamic_shared_memory_size=_shared_size(launch),
        )
    decided = _decisions(launch.op)
    if decided:
        made.operation.attributes[alcop.DECISIONS] = to_attribute(decided)


def _decisions(launch: ir.Operation) -> dict[str, Any]:
    """What passes decided for the launch: its schedule, what is pipelined, fallback."""
    found = {
        "schedule": alcop.get(launch, alcop.ScheduleAttr),
        "schedule_source": alcop.get_plain(launch, alcop.SCHEDULE_SOURCE),
        "pipelines": alcop.get_plain(launch, alcop.PIPELINES),
        "fallback": alcop.get_plain(launch, alcop.FALLBACK),
    }
    return {name: value for name, value in found.items() if value is not None}


def _shared_size(launch: KernelLaunch) -> Any | None:
    if not launch.shared_bytes:
        return launch.shared_size
    return arith.constant(build.integer(32), launch.shared_bytes)


def _pointer(buffer: ir.Value) -> Any:
    kind = _pointer_type(buffer.type)
    return buffer if buffer.type == kind else build.reinterpreted(kind, buffer)


def _pointer_type(kind: ir.Type) -> Any:
    return ir.MemRefType.get([1], kind.element_type)


def _open_strides(buffer: ir.Value) -> list[Any]:
    numbers = open_strides(buffer.type)
    if not numbers:
        return []
    strides = memref.extract_strided_metadata(buffer)[2 + buffer.type.rank :]
    return [strides[number] for number in numbers]


def _parameter_type(kind: ir.Type) -> Any:
    return build.integer(64) if isinstance(kind, ir.IndexType) else kind


def _to_parameter(scalar: ir.Value) -> Any:
    return _cast(scalar, _parameter_type(scalar.type))


def _cast(scalar: ir.Value, kind: ir.Type) -> Any:
    return scalar if scalar.type == kind else arith.index_cast(kind, scalar)


def _pointer_attributes(
    parameter: ir.Value, buffer: ir.Value, noalias: bool
) -> dict[str, Any]:
    """Those of the parameter that is given a buffer of the host."""
    attributes: dict[str, Any] = {"llvm.align": to_attribute(base_alignment(buffer))}
    if noalias:
        attributes["llvm.noalias"] = ir.UnitAttr.get()
    if launches.is_only_read(parameter):
        attributes["llvm.readonly"] = ir.UnitAttr.get()
    elif launches.is_only_written(parameter):
        attributes["llvm.writeonly"] = ir.UnitAttr.get()
    return attributes


def _map_attributes() -> dict[str, Any]:
    """Those of a tensor map; alcop-lower-to-nvvm lets it be passed by value."""
    return {
        "llvm.align": to_attribute(TENSOR_MAP_ALIGNMENT),
        alcop.TENSOR_MAP: ir.UnitAttr.get(),
    }


def _identifier(name: str) -> str:
    """`name` as PTX ISA, "Identifiers" has them: an underscore alone is none either."""
    made = re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)
    return f"kernel{made}" if made in _RESERVED or not made.strip("_") else made
