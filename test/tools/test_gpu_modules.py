"""Kernels that a file brings along: PTX, gpu.binary, bundles, runs of one kernel."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from devices import has_ptxas

import alcop_mlir
from alcop_mlir.bindings import ir, llvm, make_context, passmanager
from alcop_mlir.tools import compile as compile_tool
from alcop_mlir.tools import run as run_tool

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BODY = """
  gpu.module @k %s {
    gpu.func @reversed(%%x: memref<64xf32>, %%y: memref<64xf32>)
        workgroup(%%s: memref<64xf32, #gpu.address_space<workgroup>>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %%c63 = arith.constant 63 : index
      %%t = gpu.thread_id x
      %%v = memref.load %%x[%%t] : memref<64xf32>
      memref.store %%v, %%s[%%t] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %%r = arith.subi %%c63, %%t : index
      %%w = memref.load %%s[%%r] : memref<64xf32, #gpu.address_space<workgroup>>
      memref.store %%w, %%y[%%t] : memref<64xf32>
      gpu.return
    }
  }"""
KERNEL = f"module attributes {{gpu.container_module}} {{{BODY % ''}\n}}"
SM_90 = KERNEL.replace("@k ", '@k [#nvvm.target<chip = "sm_90">] ')
HOST = """
  func.func @turn(%x: memref<64xf32>, %y: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @k::@reversed blocks in (%c1, %c1, %c1)
        threads in (%c64, %c1, %c1)
        args(%x : memref<64xf32>, %y : memref<64xf32>)
    return
  }
}"""
LAUNCHED = f"{KERNEL.rstrip('}')}{HOST}"
# The same for arrays of any size, by one kernel for those of 64, by another for others.
BRANCHES = f"""{KERNEL.rstrip("}").replace("memref<64xf32>", "memref<1xf32>")}
  func.func @turn(%x: memref<?xf32>, %y: memref<?xf32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %m = memref.dim %y, %c0 : memref<?xf32>
    %px = memref.reinterpret_cast %x to offset: [0], sizes: [1], strides: [1]
      : memref<?xf32> to memref<1xf32>
    %py = memref.reinterpret_cast %y to offset: [0], sizes: [1], strides: [1]
      : memref<?xf32> to memref<1xf32>
    %rest = arith.remui %n, %c64 : index
    %whole = arith.cmpi eq, %rest, %c0 : index
    %some = arith.cmpi sge, %n, %c64 : index
    %fits = arith.andi %whole, %some : i1
    scf.if %fits {{
      gpu.launch_func @k::@reversed blocks in (%c1, %c1, %c1)
          threads in (%c64, %c1, %c1)
          args(%px : memref<1xf32>, %py : memref<1xf32>)
    }}
    return
  }}
}}"""
BARE = """
llvm.mlir.global internal constant @one(1.0 : f32) : f32
llvm.func @more(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %p = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %v = llvm.load %p : !llvm.ptr<1> -> f32
  %a = llvm.mlir.addressof @one : !llvm.ptr
  %u = llvm.load %a : !llvm.ptr -> f32
  %w = llvm.fadd %v, %u : f32
  llvm.store %w, %p : f32, !llvm.ptr<1>
  llvm.return
}"""
VECTOR = {"dtype": "f32", "shape": [64], "init": "arange"}
LAUNCH = {"grid": [1], "block": [64], "arguments": [{"array": VECTOR}] * 2}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(text: str, name: str = "in.mlir") -> str:
    Path(name).write_text(text)
    return name


def emitted(text: str, *options: str) -> str:
    """What alcop-compile writes."""
    file = stored(text)
    assert compile_tool.main([file, *options, "-o", "out"]) == 0
    return Path("out").read_text()


@pytest.mark.usefixtures("folder")
def test_ptx_of_a_gpu_module() -> None:
    """Of gpu ops, and of what lowering made of them."""
    ptx = emitted(KERNEL, "--emit=ptx")
    assert ".visible .entry reversed(" in ptx
    assert ".target sm_80" in ptx
    assert emitted(emitted(KERNEL, "--emit=mlir"), "--emit=ptx") == ptx


@pytest.mark.usefixtures("folder")
def test_ptx_of_nvvm_functions_outside_of_a_gpu_module() -> None:
    """As mlir-translate takes them; globals go along."""
    assert ".visible .entry more(" in emitted(BARE, "--emit=ptx")


@pytest.mark.usefixtures("folder")
def test_the_target_is_the_one_that_the_module_names() -> None:
    assert ".target sm_90" in emitted(SM_90, "--emit=ptx")
    assert ".target sm_86" in emitted(SM_90, "--emit=ptx", "--target=sm_86")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", [KERNEL, SM_90, LAUNCHED, "mlir"])
def test_one_kernel_runs_with_a_launch_file(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On arrays of which the kernel turns one round."""
    if text == "mlir":
        text = emitted(KERNEL, "--emit=mlir")
    launch = stored(json.dumps(LAUNCH), "launch.json")
    arguments = [stored(text), "--launch", launch, "--save-outputs", "out.npy"]
    assert run_tool.main(arguments) == 0
    x, y = (np.load(f"out.npy/argument{n}.npy") for n in (0, 1))
    np.testing.assert_array_equal(y, x[::-1])
    assert "hazards    none" in capsys.readouterr().out


def test_a_kernel_of_one_of_several_modules_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = BODY.replace("@k", "@other").replace("@reversed", "@again") % ""
    file = stored(f"module {{{BODY % ''}{other}}}")
    launch = stored(json.dumps(LAUNCH), "launch.json")
    assert run_tool.main([file, "--launch", launch]) == 1
    message = "'in.mlir' has 2 gpu.modules: name a kernel in 'launch.json'"
    assert capsys.readouterr().err == f"error: {message}\n"
    stored(json.dumps({**LAUNCH, "kernel": "again"}), launch)
    assert run_tool.main([file, "--launch", launch]) == 0
    stored(json.dumps({**LAUNCH, "kernel": "agai"}), launch)
    assert run_tool.main([file, "--launch", launch]) == 1
    message = "there is no kernel agai; the module has reversed"
    assert message in capsys.readouterr().err


def test_a_host_function_that_launches_them_is_a_bundle(folder: Path) -> None:
    file = stored(LAUNCHED)
    assert compile_tool.main([file, "-o", "bundle"]) == 0
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    alcop_mlir.load(folder / "bundle")(x, y)
    np.testing.assert_array_equal(y, x[::-1])


def test_branches_around_launches_are_stored(folder: Path) -> None:
    """And evaluated by the launcher: what is not launched changes nothing."""
    file = stored(BRANCHES)
    assert compile_tool.main([file, "-o", "bundle"]) == 0
    turn = alcop_mlir.load(folder / "bundle")
    for size, is_turned in ((63, False), (64, True), (65, False), (128, True)):
        x, y = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
        turn(x, y)
        wanted = np.concatenate([x[:64][::-1], y[64:]]) if is_turned else 0 * x
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["in.mlir"],
            "nothing to store: no function launches the kernels of this gpu.module",
        ),
        (["sm_70.mlir"], "unknown target 'sm_70', expected one of sm_80, sm_86"),
        (["no.mlir", "--emit=gpu-binary"], "no.mlir:3:1: custom op 'no' is unknown"),
    ],
)
def test_compiling_that_fails(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(KERNEL)
    stored(SM_90.replace("sm_90", "sm_70"), "sm_70.mlir")
    stored("\n\nno", "no.mlir")
    assert compile_tool.main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert error.count("\n") == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--save-outputs=x"], "--save-outputs is for runs with --launch"),
        (
            ["--launch=launch.json", "--device=cuda"],
            "one kernel of a file runs on the emulator only, got --device cuda",
        ),
        (
            ["--launch=launch.json", "--repeat=2"],
            "--repeat is not for one kernel of a file",
        ),
    ],
)
def test_options_that_do_not_fit(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(json.dumps(LAUNCH), "launch.json")
    assert run_tool.main([stored(KERNEL), *arguments]) == 1
    assert capsys.readouterr().err == f"error: {message}\n"


# --- for upstream's gpu-to-llvm

HOST_TO_LLVM = (
    "builtin.module(convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "convert-cf-to-llvm,gpu-to-llvm{use-bare-pointers-for-kernels=true},reconcile-unrealized-casts)"
)


# By parts of K, where there are two, else as it is; the host asserts that sizes fit.
VARIANTS = """
func.func @f(%A: memref<8x?xf16>, %B: memref<?x16xf16>, %C: memref<8x16xf16>) {
  linalg.matmul {alcop.variants = [
      {schedule = {block = [16, 16, 32], warp = [16, 16], split_k = 2}},
      {schedule = {block = [16, 16, 32], warp = [16, 16], stages = [1, 1]}}]}
    ins(%A, %B : memref<8x?xf16>, memref<?x16xf16>) outs(%C : memref<8x16xf16>)
  return
}"""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("source", "options"),
    [
        (LAUNCHED, []),
        (LAUNCHED, ["--no-ptxas"]),
        (VARIANTS, ["--no-ptxas"]),
        ("matmul_any_size_f16", []),
    ],
)
def test_gpu_to_llvm_takes_binaries(source: str, options: list[str]) -> None:
    """And what translates to LLVM IR launches the kernel by MLIR's CUDA runtime."""
    text = source
    if source == "matmul_any_size_f16":
        text = (EXAMPLES / f"{source}.mlir").read_text()
    binary = emitted(text, "--emit=gpu-binary", *options)
    assert "gpu.module" not in binary
    is_cubin = has_ptxas() and not options
    kind = 'bin = "\\7FELF' if is_cubin else 'assembly = "'
    assert f'[#gpu.object<#nvvm.target<chip = "sm_80">, {kind}' in binary
    with make_context():
        module = ir.Module.parse(binary)
        passmanager.PassManager.parse(HOST_TO_LLVM).run(module.operation)
        llvm_ir = llvm.translate_module_to_llvmir(module.operation)
    load = "mgpuModuleLoad" if is_cubin else "mgpuModuleLoadJIT"
    assert f"call ptr @{load}(" in llvm_ir
    assert "call void @mgpuLaunchKernel(" in llvm_ir
    if not is_cubin:
        assert "\\0A\\00" in llvm_ir  # the end of the PTX


@pytest.mark.usefixtures("folder")
def test_binaries_hold_their_constants() -> None:
    """Upstream's host code has no pointer to them that a GPU could read."""
    numbers = ", ".join(f"{number}.0" for number in range(17))
    kind = "tensor<17xf32>"
    source = f"""func.func @f(%a: {kind}) -> {kind} {{
      %w = arith.constant dense<[{numbers}]> : {kind}
      %s = linalg.add ins(%a, %w : {kind}, {kind}) outs(%a : {kind}) -> {kind}
      return %s : {kind}
    }}"""
    binary = emitted(source, "--emit=gpu-binary", "--no-ptxas")
    assert "memref.get_global" not in binary
    assert "memref.get_global" in emitted(source, "--emit=mlir")


@pytest.mark.usefixtures("folder")
def test_kernels_need_no_host_to_become_binaries() -> None:
    """Beside whatever else the module holds."""
    other = "func.func @other(%x: memref<4xf32>, %s: index) { return }"
    text = emitted(f"module {{{other}{BODY % ''}}}", "--emit=gpu-binary", "--no-ptxas")
    assert "func.func @other" in text
    assert "gpu.binary @k" in text
