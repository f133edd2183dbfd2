"""A network's first layer, and transposed convolutions: kernels, and bytes of copies.

usage: python bench/bench_stem.py [--target sm_80] [--batch 64]

Compiles the first layer of ResNet (7x7 by 2, 224 x 224 x 3 to 64), and a transposed
convolution (4x4 by 2, 28 x 28 x 64 to 64), in f16 with f32 outputs, with filters that
are arguments and constants. Prints how many kernels there are, what the intermediate
buffers hold, which kernels write and the contraction reads, and the SASS per mma.sync
of the largest contraction. Needs the extra `ptxas`. The raw records go to
bench/results/stem.jsonl.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from bench_conv import figures
from records import print_table, store

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.manifest.functions import Function
from alcop_mlir.target import find_target

FIRST = "7x7x3x64xf16"
TRANSPOSED = "4x4x64x64xf16"


def first_layer(batch: int) -> str:
    """The text of a function with %w to be given, before that of the filter."""
    x, p = f"tensor<{batch}x224x224x3xf16>", f"tensor<{batch}x230x230x3xf16>"
    y = f"tensor<{batch}x112x112x64xf32>"
    return f"""func.func @f(%x: {x}FILTER, %y: {y}) -> {y} {{
      %zero = arith.constant 0.0 : f16
      %none = arith.constant 0.0 : f32
      %p = tensor.pad %x low[0, 3, 3, 0] high[0, 3, 3, 0] {{
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %zero : f16
      }} : {x} to {p}
      %z = linalg.fill ins(%none : f32) outs(%y : {y}) -> {y}
      %r = linalg.conv_2d_nhwc_hwcf {{strides = dense<2> : tensor<2xi64>}}
        ins(%p, %w : {p}, tensor<{FIRST}>) outs(%z : {y}) -> {y}
      return %r : {y} }}"""


def transposed(batch: int) -> str:
    """The same of a transposed convolution, with zeros between pixels."""
    x, p = f"tensor<{batch}x28x28x64xf16>", f"tensor<{batch}x59x59x64xf16>"
    y = f"tensor<{batch}x56x56x64xf32>"
    return f"""func.func @f(%x: {x}FILTER, %y: {y}) -> {y} {{
      %zero = arith.constant 0.0 : f16
      %none = arith.constant 0.0 : f32
      %e = tensor.empty() : {p}
      %q = linalg.fill ins(%zero : f16) outs(%e : {p}) -> {p}
      %p = tensor.insert_slice %x into %q[0, 2, 2, 0] [{batch}, 28, 28, 64] [1, 2, 2, 1]
        : {x} into {p}
      %z = linalg.fill ins(%none : f32) outs(%y : {y}) -> {y}
      %r = linalg.conv_2d_nhwc_hwcf ins(%p, %w : {p}, tensor<{TRANSPOSED}>)
        outs(%z : {y}) -> {y}
      return %r : {y} }}"""


def with_filter(text: str, kind: str, is_constant: bool) -> str:
    """With a filter of this type, an argument or a constant."""
    if not is_constant:
        return text.replace("FILTER", f", %w: tensor<{kind}>")
    *shape, _ = kind.split("x")
    random = np.random.default_rng(0)
    data = random.uniform(-1, 1, [int(size) for size in shape]).astype(np.float16)
    value = f'%w = arith.constant dense<"0x{data.tobytes().hex().upper()}">'
    return text.replace("FILTER", "").replace("{", f"{{\n{value} : tensor<{kind}>", 1)


def copied_bytes(function: Function) -> int:
    """What the intermediate buffers hold."""
    return sum(
        math.prod(size for size in one.shape if isinstance(size, int))
        * ELEMENT_TYPES[one.dtype].bytes
        for one in function.intermediates
    )


def measure(name: str, text: str, target: str) -> dict[str, object]:
    """One record."""
    options = compiler.Options(find_target(target))
    bundle = compiler.compile_source(inputs.read_text(text.encode()), options)
    (function,) = bundle.functions
    contractions = [one for one in function.kernels if one.schedule is not None]
    largest = contractions[-1]
    cubin = bundle.code_of(largest).cubin
    if cubin is None:
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    return {
        "layer": name,
        "kernels": len(function.kernels),
        "contractions": len(contractions),
        "copied_bytes": copied_bytes(function),
        "schedule": str(largest.schedule),
        "registers": largest.registers,
        "spill_bytes": largest.spill_bytes,
        **figures(cubin),
    }


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args()
    layers = (("first", first_layer, FIRST), ("transposed", transposed, TRANSPOSED))
    records = [
        measure(
            f"{name}, {'constant' if is_constant else 'argument'}",
            with_filter(text(options.batch), kind, is_constant),
            options.target,
        )
        for name, text, kind in layers
        for is_constant in (False, True)
    ]
    print(f"{options.batch} images, {options.target} (* all of an unrolled loop)")
    names = ("kernels", "contractions", "copied_bytes", "schedule")
    print_table(
        ["layer, filter", *names, "SASS per mma", "registers", "spill_bytes"],
        [
            [
                *(record[name] for name in ("layer", *names)),
                f"{record['per_mma']:.2f}{'*' if record['unrolled'] else ' '}",
                *(record[name] for name in ("registers", "spill_bytes")),
            ]
            for record in records
        ],
    )
    print(f"\nrecords: {store('stem', records)}")


if __name__ == "__main__":
    main()
