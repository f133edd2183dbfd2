"""A kernel with one copy that can be pipelined, and scripts that are run on it."""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import ir, passmanager

KERNEL = """
func.func @{name}(%A: memref<64x512xf16>, %O: memref<512xf16>) {{
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : {shared}
  scf.for %k = %c0 to %c512 step %c32 {{
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1]
        : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a
        : memref<64x32xf16, strided<[512, 1], offset: ?>> to {shared}
    gpu.barrier
    %v = memref.load %a[%c0, %c0] : {shared}
    memref.store %v, %O[%k] : memref<512xf16>
    gpu.barrier
  }}
  return
}}
"""
SCRIPT = """
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !transform.any_op) {{
    %f = transform.structured.match ops{{["func.func"]}} in %root
        : (!transform.any_op) -> !transform.any_op
    {body}
    transform.yield
  }}
  {payload}
}}
"""
SHARED = "memref<64x32xf16, #gpu.address_space<workgroup>>"


def kernel(name: str = "f") -> str:
    """A function with a loop that can be pipelined."""
    return KERNEL.format(name=name, shared=SHARED)


def parse_script(body: str) -> Any:
    """A module of the kernel and of a script, in which `%f` is the kernel."""
    return ir.Module.parse(SCRIPT.format(body=body, payload=kernel()))


def run_script(body: str) -> str:
    """The module as text after the pass manager ran the script on it."""
    module = parse_script(body)
    manager = passmanager.PassManager.parse("builtin.module(transform-interpreter)")
    manager.run(module.operation)
    return str(module)


def op(name: str, handle: str, options: str = "") -> str:
    """A call of one of our ops on a handle of any op."""
    kind = "!transform.any_op"
    return f'"alcop_transform.{name}"({handle}) {{{options}}} : ({kind}) -> {kind}'
