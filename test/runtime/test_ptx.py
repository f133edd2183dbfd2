"""runtime/ptx.py: PTX from lowered modules, ptxas and its statistics."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from devices import has_ptxas

from alcop_mlir.bindings import ir, make_context, passmanager
from alcop_mlir.errors import CompileError
from alcop_mlir.runtime import ptx
from alcop_mlir.target import find_target, target_names
from alcop_mlir.transforms.kernels.lower_to_nvvm import LowerToNvvm

# Each thread doubles eight elements, on the way through shared memory.
KERNEL = """
gpu.module @kernels {
  gpu.func @double(%p: memref<1xf16> {llvm.align = 16 : i64}) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %a = memref.reinterpret_cast %p to offset: [0], sizes: [1024], strides: [1]
      : memref<1xf16> to memref<1024xf16>
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %s = memref.view %memory[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
      to memref<1024xf16, #gpu.address_space<workgroup>>
    %thread = gpu.thread_id x
    %at = arith.muli %thread, %c8 : index
    %copy = nvgpu.device_async_copy %a[%at], %s[%at], 8 {bypassL1}
      : memref<1024xf16> to memref<1024xf16, #gpu.address_space<workgroup>>
    %group = nvgpu.device_async_create_group %copy
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    gpu.barrier
    %v = vector.load %s[%at]
      : memref<1024xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    %w = arith.addf %v, %v : vector<8xf16>
    vector.store %w, %a[%at] : memref<1024xf16>, vector<8xf16>
    gpu.return
  }
}
"""
LLVM = "gpu.module @k {{ llvm.func {name}() {call} {{ {body} llvm.return }} }}"
needs_ptxas = pytest.mark.skipif(not has_ptxas(), reason="needs ptxas")


@contextmanager
def gpu_module(text: str, target: str = "sm_80", lower: bool = True) -> Iterator[Any]:
    """The first op of `text`, lowered."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        if lower:
            manager = passmanager.PassManager("builtin.module")
            manager.add(LowerToNvvm(target=target), "alcop-lower-to-nvvm")
            manager.run(module.operation)
        yield module.body.operations[0]


def emit(text: str, target: str = "sm_80", lower: bool = True) -> str:
    with gpu_module(text, target, lower) as kernels:
        return ptx.emit_ptx(kernels, find_target(target))


@pytest.mark.parametrize("target", target_names())
def test_emit(target: str) -> None:
    text = emit(KERNEL, target)
    assert f".target {target}" in text
    assert ".visible .entry double(" in text
    assert ".reqntid 128, 1, 1" in text
    assert re.search(r"\.param \.u64 \.ptr \.align 16 double_param_0", text)
    assert re.search(r"\.extern \.shared \.align 1024 \.b8 \w+\[\];", text)
    assert re.search(r"cp\.async\.cg\.shared\.global \[%rd\d+\], \[%rd\d+\], 16;", text)
    assert "ld.shared.v4.b32" in text
    assert "st.global.v4.b32" in text


def test_without_the_optimizer() -> None:
    """The instructions that mean something are the same."""
    with gpu_module(KERNEL) as kernels:
        text = ptx.emit_ptx(kernels, find_target("sm_80"), optimize=False)
    assert text != emit(KERNEL)
    for instruction in ("cp.async.cg.shared.global", "bar.sync"):
        assert text.count(instruction) == emit(KERNEL).count(instruction)


def test_same_input_same_bytes() -> None:
    assert emit(KERNEL) == emit(KERNEL)


def test_emit_refuses_what_is_not_lowered() -> None:
    with pytest.raises(CompileError, match=r"'gpu\.func' in .*run alcop-lower-to-nvvm"):
        emit(KERNEL, lower=False)


def test_emit_refuses_nested_ops_of_other_dialects() -> None:
    text = LLVM.format(
        name="@f", call="attributes {nvvm.kernel}", body="%0 = arith.constant 1 : i32"
    )
    with pytest.raises(CompileError, match=r"'arith\.constant' in .*not lowered"):
        emit(text, lower=False)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("llvm.nvvm.made.up", "LLVM does not know the intrinsic 'llvm.nvvm.made.up'"),
        ("__nv_made_up", "calls '__nv_made_up', which is defined nowhere"),
    ],
)
def test_emit_refuses_calls_to_nobody(function: str, message: str) -> None:
    text = f"""
    gpu.module @k {{
      llvm.func @"{function}"(f32) -> f32
      llvm.func @f(%x: f32, %p: !llvm.ptr) attributes {{nvvm.kernel}} {{
        %0 = llvm.call @"{function}"(%x) : (f32) -> f32
        llvm.store %0, %p : f32, !llvm.ptr
        llvm.return
      }}
    }}"""
    with pytest.raises(CompileError, match=re.escape(message)):
        emit(text, lower=False)


def test_emit_takes_functions_of_the_driver() -> None:
    text = """
    gpu.module @k {
      llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
      llvm.func @f(%p: !llvm.ptr) attributes {nvvm.kernel} {
        %0 = llvm.call @vprintf(%p, %p) : (!llvm.ptr, !llvm.ptr) -> i32
        llvm.return
      }
    }"""
    assert "vprintf" in emit(text, lower=False)


@needs_ptxas
@pytest.mark.parametrize("target", target_names())
def test_assemble(target: str) -> None:
    cubin = ptx.assemble(emit(KERNEL, target), find_target(target))
    assert cubin is not None
    assert cubin.data.startswith(b"\x7fELF")
    assert 0 < cubin.registers <= 255
    assert (cubin.spill_bytes, cubin.shared_bytes, cubin.stack_bytes) == (0, 0, 0)
    assert f"'double' for '{target}'" in cubin.log


@needs_ptxas
def test_assemble_names_the_first_error() -> None:
    text = emit(KERNEL).replace("ld.shared.v4.b32", "ld.shared.v5.b32")
    with pytest.raises(CompileError, match=r"^ptxas: .*kernels\.ptx, line \d+; error"):
        ptx.assemble(text, find_target("sm_80"))


@needs_ptxas
def test_assemble_refuses_too_much_static_shared_memory() -> None:
    text = emit(KERNEL).replace(
        "{\n", "{\n.shared .align 4 .b8 big[65536];\nst.shared.u32 [big], 0;\n", 1
    )
    with pytest.raises(CompileError, match="uses too much shared data"):
        ptx.assemble(text, find_target("sm_80"))


def test_cubin_sums_up_the_log() -> None:
    log = """
    Function properties for f
        8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
    ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem
    Function properties for g
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 214 registers, 360 bytes cmem[0]"""
    cubin = ptx._cubin(b"", log)
    assert (cubin.registers, cubin.spill_bytes) == (214, 16)
    assert (cubin.shared_bytes, cubin.stack_bytes) == (1024, 8)


def test_each_kernel_of_a_module_has_its_own_figures() -> None:
    """Also where one's name begins like another's."""
    log = "ptxas info    : 0 bytes gmem\n"
    for name, registers, stores in (("f_sum", 90, 8), ("f", 20, 0)):
        log += f"""ptxas info    : Compiling entry function '{name}' for 'sm_80'
ptxas info    : Function properties for {name}
    0 bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads
ptxas info    : Used {registers} registers, {stores} bytes smem, 380 bytes cmem[0]
"""
    module = ptx._cubin(b"both", log)
    assert (module.registers, module.spill_bytes, module.shared_bytes) == (90, 8, 8)
    small = ptx.of_kernel(module, "f")
    assert (small.registers, small.spill_bytes, small.shared_bytes) == (20, 0, 0)
    assert small.data == b"both"
    assert ptx.of_kernel(module, "f_sum").registers == 90
    assert ptx.of_kernel(module, "other") == module


def test_without_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALCOP_PTXAS", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(ptx, "_ptxas_in_wheel", lambda: None)
    assert ptx.assemble("", find_target("sm_80")) is None


FRUGAL = """#!/bin/sh
# Spills of `g` 8 bytes, unless it asks for room for one block only; `h` needs all.
while [ "$1" != -o ]; do shift; done
cp "$3" "$2"
g=8
grep -q 'minnctapersm 1' "$3" && g=0
for one in "f 32 0" "g 96 $g" "h 255 16"; do
  set -- $one
  echo "ptxas info : Compiling entry function '$1' for 'sm_80'" >&2
  echo "  0 bytes stack frame, $3 bytes spill stores, 0 bytes spill loads" >&2
  echo "ptxas info : Used $2 registers, used 0 barriers" >&2
done
"""


def test_no_kernel_spills_for_the_sake_of_more_blocks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "ptxas"
    program.write_text(FRUGAL)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("ALCOP_PTXAS", str(program))
    entry = ".visible .entry {}(\n.param .u64 p\n)\n.reqntid 64, 1, 1\n{{\nret;\n}}\n"
    text = "".join(map(entry.format, "fgh"))
    cubin = ptx.assemble(text, find_target("sm_80"))
    assert cubin is not None
    assert [ptx.of_kernel(cubin, one).spill_bytes for one in "fgh"] == [0, 0, 16]
    given = cubin.data.decode()
    assert given == text.replace(
        "entry g(\n.param .u64 p\n)\n.reqntid 64, 1, 1\n",
        "entry g(\n.param .u64 p\n)\n.reqntid 64, 1, 1\n.minnctapersm 1\n",
    )


def test_ptxas_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "ptxas"
    program.write_text("#!/bin/sh\necho 'ptxas fatal   : no licence' >&2\nexit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("ALCOP_PTXAS", str(program))
    with pytest.raises(CompileError, match=r"^ptxas: ptxas fatal   : no licence$"):
        ptx.assemble("", find_target("sm_80"))
    monkeypatch.setenv("ALCOP_PTXAS", str(tmp_path / "none"))
    with pytest.raises(CompileError, match=r"^ALCOP_PTXAS is '.*none', which is no"):
        ptx.assemble("", find_target("sm_80"))


@pytest.mark.parametrize(
    ("kernels", "offered", "is_asked_for"),
    [(2, True, True), (2, False, False), (1, True, False)],
)
def test_ptxas_compiles_several_kernels_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kernels: int,
    offered: bool,
    is_asked_for: bool,
) -> None:
    """Where it can: older ones know no such option."""
    program = tmp_path / "ptxas"
    help_text = "--split-compile <N>" if offered else "--opt-level <N>"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = --help ]; then echo "{help_text}"; exit; fi\n'
        'echo "$@" >&2; exit 1\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("ALCOP_PTXAS", str(program))
    text = ".visible .entry f()\n" * kernels
    with pytest.raises(CompileError) as refused:
        ptx.assemble(text, find_target("sm_80"))
    assert ("--split-compile=" in str(refused.value)) == is_asked_for


@needs_ptxas
def test_several_kernels_have_the_code_of_each() -> None:
    """What ptxas does in threads is the same each time."""
    text = emit(KERNEL)
    body = text.partition(".visible .entry double(")[2]
    both = f"{text}\n.visible .entry again({body}"
    first, second = (ptx.assemble(both, find_target("sm_80")) for _ in range(2))
    alone = ptx.assemble(text, find_target("sm_80"))
    assert first is not None
    assert second is not None
    assert alone is not None
    assert first.data == second.data
    assert first.registers == alone.registers
    assert {"again", "double"} <= set(re.findall(r"function '(\w+)'", first.log))
