"""Lower kernels to the llvm and nvvm dialects by upstream's conversions.

Before:  gpu.module @k { gpu.func @f(%p: memref<1xf16>) kernel
             attributes {known_block_size = array<i32: 128, 1, 1>} { ... } }
After:   gpu.module @k [#nvvm.target<chip = "sm_80">] {
           llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, ...}
           llvm.func @f(%p: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel,
             nvvm.reqntid = array<i32: 128, 1, 1>} { ... } }

The dynamic shared memory becomes an external symbol, aligned to 1024 bytes: LLVM would
print upstream's form of it as a static variable of one byte. Workgroup buffers that a
`gpu.func` allocates itself become static variables (`static_buffers.py`): upstream
would call `malloc`. The known block size becomes `.reqntid`. Functions of libdevice
such as `__nv_expf` are defined, if `device_functions.py` knows them; powers with whole
constants become multiplications, and `math.exp2` in f32 that may be approximated
(`fastmath<afn>`) is one instruction. Conversions of floats of eight bits are made
here too (`eight_bit_floats.py`); wgmma with A in registers, which upstream lacks,
becomes text of PTX (`warpgroup_text.py`). Kernels are converted in parallel. Only llvm
and nvvm ops may remain: an op that no conversion supports is an error here, as
translating it would crash the process. So is a launch whose block or shared memory
exceeds the target's limits.

Runs last, after alcop-outline-kernels. Host functions are left unchanged. Reads and
erases `alcop.tensor_map`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from alcop_mlir.analysis.ir.loops import constant, made_by
from alcop_mlir.analysis.ir.symbols import name_of, top_level
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.moves import is_plain_transfer
from alcop_mlir.bindings import ir, llvm, passmanager, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.resources import SHARED_ALIGNMENT
from alcop_mlir.target import (
    DEFAULT_TARGET,
    SHARED_SPACE,
    TENSOR_MAP_BYTES,
    Target,
    find_target,
)
from alcop_mlir.transforms.kernels.approximations import approximate_powers
from alcop_mlir.transforms.kernels.device_functions import define_called
from alcop_mlir.transforms.kernels.eight_bit_floats import lower_eight_bit_floats
from alcop_mlir.transforms.kernels.one_by_one import one_by_one
from alcop_mlir.transforms.kernels.powers import (
    expand_integer_powers,
    expanded_powers,
    widen_powers,
)
from alcop_mlir.transforms.kernels.static_buffers import declare_buffers
from alcop_mlir.transforms.kernels.warpgroup_text import lower_warpgroup_mma

# Order matters: nvgpu first, as its ops use memrefs; scf before gpu, whose conversion
# includes cf; the casts between the conversions fold only once dead constants are gone.
# nvgpu is converted with 64-bit indices, so all other dialects are as well.
_CONVERSIONS = (
    "canonicalize",
    "cse",
    "convert-nvgpu-to-nvvm",
    "convert-vector-to-scf",
    "lower-affine",  # its loops become scf's
    "convert-scf-to-cf",
    "expand-strided-metadata",
    "lower-affine",
    "arith-expand",
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=true index-bitwidth=64}",
    "convert-vector-to-llvm",
    # Math ops without a function of libdevice; before gpu's conversion, it would make
    # intrinsics that convert-gpu-to-nvvm rejects.
    "convert-math-to-llvm",
    # Lowering vector slices makes constants again, building vectors makes poison.
    "convert-arith-to-llvm{index-bitwidth=64}",
    "convert-ub-to-llvm{index-bitwidth=64}",
    "convert-nvvm-to-llvm",
    "canonicalize",
    "cse",
    "reconcile-unrealized-casts",
)
# Dialects written in C++ of which ops are in kernels here.
_NATIVE = frozenset(
    "affine arith builtin cf gpu llvm math memref nvgpu nvvm scf ub vector".split()
)
_MODULE = "gpu.module"
_GRID_CONSTANT = "nvvm.grid_constant"
_MASK_BITS = 16  # of the blocks of a cluster; PTX ISA, cp.async.bulk.tensor
_TENSOR_COPY = "nvvm.cp.async.bulk.tensor.shared.cluster.global"
_CAST = "builtin.unrealized_conversion_cast"
# bytes; the widest swizzle pattern that any copy engine uses: PTX ISA, tensor swizzling
DYNAMIC_SHARED_ALIGNMENT = 1024


@frozen
class LowerToNvvm(Pass):
    name = "alcop-lower-to-nvvm"
    anchor = "builtin.module"

    target: str = option(DEFAULT_TARGET, "GPU to compile for, such as sm_80")

    def __post_init__(self) -> None:
        find_target(self.target)

    def run(self, op: ir.Operation) -> None:
        target = find_target(self.target)
        # Kernels are most of the ops, and hold neither launches nor modules.
        for launch in walk(op, "gpu.launch_func", enter=_is_host):
            _check_launch(launch, target)
        for kernels in walk(op, _MODULE, enter=_is_host):
            # Upstream's conversion drops what it does not know of parameters.
            maps = _tensor_maps(kernels)
            declare_buffers(kernels)
            _simplify_transfers(kernels)
            approximate_powers(kernels)
            lower_eight_bit_floats(kernels, target)
            lower_warpgroup_mma(kernels)
            one_by_one(kernels, _convert)
            define_called(kernels)
            _check_lowered(kernels)
            for shared in top_level(kernels, "llvm.mlir.global"):
                _align_shared(shared)
            for function in top_level(kernels, "llvm.func"):
                _require_block_size(function)
                _pass_by_value(function, maps.get(name_of(function), ()))
                copies = walk(function, _TENSOR_COPY)
                for copy in copies:
                    _copy_to_own_address(copy)
                if copies:
                    _hold_addresses(function)
            chip = ir.Attribute.parse(f'#nvvm.target<chip = "{target.name}">')
            kernels.attributes["targets"] = ir.ArrayAttr.get([chip])


def _is_host(op: ir.Operation) -> bool:
    return op.name != _MODULE


def _convert(op: ir.Operation) -> None:
    """Run the conversions on a `gpu.module`, or on all that are in `op`; PassError at
    the op that one of them fails on.
    """
    modules = [op] if op.name == _MODULE else top_level(op, _MODULE)
    for kernels in modules:
        _run([_expansion(kernels)], kernels)
    with _threads(op):
        _run(_CONVERSIONS, op)


def _run(passes: Sequence[str], op: ir.Operation) -> None:
    text = f"{_MODULE}({','.join(passes)})"
    if op.name != _MODULE:
        text = f"{op.name}({text})"
    manager = passmanager.PassManager.parse(text)
    manager.enable_verifier(False)  # the pass manager around this pass verifies
    try:
        manager.run(op)
    except ir.MLIRError as error:
        why = error.error_diagnostics[0]
        culprits = [one for one in walk(op)[1:] if one.location == why.location]
        raise PassError([*culprits, op][0], why.message) from error


@contextmanager
def _threads(op: ir.Operation) -> Iterator[None]:
    """Let MLIR convert the modules in `op` in parallel.

    Not those with ops of other dialects, which may be defined in Python: a thread that
    asks such an op anything waits for the interpreter, which waits for the thread.
    """
    dialects = {one.name.partition(".")[0] for one in walk(op)}
    context = op.context
    if context.get_num_threads() > 1 or not dialects <= _NATIVE:
        yield
        return
    context.enable_multithreading(True)
    try:
        yield
    finally:
        context.enable_multithreading(False)


def _expansion(kernels: ir.Operation) -> str:
    """Upstream's pass that expands math ops."""
    widen_powers(kernels)
    expand_integer_powers(kernels)
    return f"math-expand-ops{{ops={','.join(['clampf', *expanded_powers(kernels)])}}}"


def _check_launch(launch: ir.Operation, target: Target) -> None:
    """PassError where a launch exceeds the target's limits."""
    launch_func = launch.opview
    block = (launch_func.blockSizeX, launch_func.blockSizeY, launch_func.blockSizeZ)
    threads = math.prod(constant(size) or 1 for size in block)
    if threads > target.threads_per_block:
        raise PassError(
            launch,
            f"a block has {threads} threads, {target.name} takes "
            f"{target.threads_per_block}",
        )
    size = launch_func.dynamicSharedMemorySize
    shared = 0 if size is None else constant(size) or 0
    if shared > target.shared_bytes_per_block:
        raise PassError(
            launch,
            f"a block needs {shared} bytes of shared memory, {target.name} has "
            f"{target.shared_bytes_per_block}: fewer stages or a smaller block",
        )


def _check_lowered(kernels: ir.Operation) -> None:
    """PassError at an op that no conversion supports."""
    inside = walk(kernels)[1:]
    remaining = [op for op in inside if not op.name.startswith(("llvm.", "nvvm."))]
    if remaining:
        # A cast remains because of the op that it was built for: report that op.
        culprit = next((op for op in remaining if op.name != _CAST), remaining[0])
        raise PassError(
            culprit,
            f"'{culprit.name}' is left after all conversions, expected llvm and nvvm "
            "only",
        )


def _align_shared(shared: ir.Operation) -> None:
    """Align a shared buffer; make the dynamic one, sized by the launch, external.

    Upstream aligns a buffer that a kernel declares to its element, while LLVM merges
    accesses up to 16 bytes, and cp.async copies 16 bytes.
    """
    attributes = shared.attributes
    if attributes["addr_space"].value != SHARED_SPACE:
        return
    alignment = SHARED_ALIGNMENT
    if "alignment" in attributes:
        alignment = max(alignment, attributes["alignment"].value)
    if str(attributes["global_type"]) == "!llvm.array<0 x i8>":
        attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
        alignment = DYNAMIC_SHARED_ALIGNMENT
    attributes["alignment"] = ir.IntegerAttr.get(build.integer(64), alignment)


def _simplify_transfers(kernels: ir.Operation) -> None:
    """Replace one-dimensional transfers in bounds by loads and stores.

    Upstream does so in convert-vector-to-llvm only, which runs after the conversion
    that supports gpu address spaces.
    """
    for op in walk(kernels, "vector.transfer_read", "vector.transfer_write"):
        if not is_plain_transfer(op):
            continue
        with op.location, ir.InsertionPoint(op):
            if op.name == "vector.transfer_read":
                source, *indices = list(op.operands)[:-1]
                kind = op.results[0].type
                value = vector.load(kind, source, indices)
                op.results[0].replace_all_uses_with(value)
            else:
                value, target, *indices = op.operands
                vector.store(value, target, indices)
        op.erase()


def _require_block_size(function: ir.Operation) -> None:
    """Give ptxas the exact block size, not a bound; it rejects both together."""
    if "nvvm.maxntid" in function.attributes:
        function.attributes["nvvm.reqntid"] = function.attributes["nvvm.maxntid"]
        del function.attributes["nvvm.maxntid"]


def _tensor_maps(kernels: ir.Operation) -> dict[str, list[int]]:
    """The numbers of the parameters of each kernel that are tensor maps."""
    found = {}
    for function in top_level(kernels, "gpu.func"):
        attributes = function.attributes.get("arg_attrs") or ()
        found[name_of(function)] = [
            number
            for number, one in enumerate(map(ir.DictAttr, attributes))
            if alcop.TENSOR_MAP in one
        ]
    return found


def _pass_by_value(function: ir.Operation, maps: Sequence[int]) -> None:
    """Let tensor maps be in the memory of the parameters, and be read there.

    The copy engine reads them where they lie: LLVM must not copy them to the stack,
    which it does without `grid_constant`.
    """
    if not maps:
        return
    kind = ir.Type.parse(f"!llvm.array<{TENSOR_MAP_BYTES} x i8>")
    by_value = {"llvm.byval": ir.TypeAttr.get(kind), _GRID_CONSTANT: ir.UnitAttr.get()}
    every = [
        {one.name: one.attr for one in ir.DictAttr(given)}
        for given in function.attributes["arg_attrs"]
    ]
    for number in maps:
        every[number] |= by_value
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        list(map(ir.DictAttr.get, every))
    )


def _copy_to_own_address(copy: ir.Operation) -> None:
    """Let a tensor copy write to an address of the block itself.

    Upstream makes one of the cluster of it, by way of a generic address: five
    instructions more for each copy (SASS by ptxas 13.5). PTX ISA 8.6 has the form of a
    copy to the block alone; of a multicast, an address of the block is one of the
    cluster as it is (PTX ISA, "State spaces": its window contains the block's).
    """
    cast = made_by(copy.operands[0], "llvm.addrspacecast")
    if cast is None:
        return
    own = cast.operands[0]
    if _is_multicast(copy):
        with copy.location, ir.InsertionPoint(copy):
            number = llvm.ptrtoint(build.integer(64), own)
            copy.operands[0] = llvm.inttoptr(cast.results[0].type, number)
    else:
        copy.operands[0] = own
        copy.attributes["isCTAOnly"] = ir.BoolAttr.get(True)
    edit.erase_unused([cast])


def _is_multicast(copy: ir.Operation) -> bool:
    """Whether a mask says to which blocks of a cluster it copies."""
    return any(
        isinstance(operand.type, ir.IntegerType) and operand.type.width == _MASK_BITS
        for operand in copy.operands
    )


def _hold_addresses(function: ir.Operation) -> None:
    """Let a register hold where each shared variable begins.

    Else each iteration computes it again, of the number of the block in its cluster,
    for each mbarrier that it uses: three instructions of 46 where warps multiply, five
    of 37 where they copy (SASS of 128x256x64 by ptxas 13.5).
    """
    entry = function.regions[0].blocks[0]
    for op in walk(function, "llvm.mlir.addressof"):
        address = op.results[0]
        if address.type != ir.Type.parse(f"!llvm.ptr<{SHARED_SPACE}>"):
            continue
        with op.location, ir.InsertionPoint.at_block_begin(entry):
            own = edit.like(op, [address.type], [])
            number = llvm.ptrtoint(build.integer(64), own.results[0])
            held = llvm.inttoptr(address.type, build.opaque_word(number))
        address.replace_all_uses_with(held)
        op.erase()
