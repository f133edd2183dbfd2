"""Compile time and memory as programs grow.

usage: python bench/bench_scaling.py [--largest 500] [--largest-different 500]
                                       [--compiles 2000] [--plot FILE]

CPU seconds, of this process and of ptxas, for chains of n element-wise ops, n matmuls
and n functions, and milliseconds per op; then how much the memory of one process grows
over many compiles. Element-wise ops are 64 x 64, matmuls 64 x 64 x 64, or of as many
different shapes as there are, with one schedule. `--plot` draws the time per op (needs
matplotlib). The raw records go to bench/results/scaling.jsonl.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from records import print_table, store

COUNTS = (10, 20, 50, 100, 200, 500)
SCHEDULE = "block=64,64,32 warp=32,32 stages=3,2"
WARM_UP = 50  # compiles, before memory is measured
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MEGABYTE = 2**20
_TILE, _ROWS = 64, 23  # shapes: up to 23 x 23 tiles
Record = dict[str, Any]


def tensor_chain(n: int) -> str:
    """Element-wise ops on tensors, each on the result of the one before."""
    kind = "tensor<64x64xf32>"
    lines = [f"%e = tensor.empty() : {kind}"]
    for number in range(n):
        source = f"%v{number - 1}" if number else "%x"
        lines.append(
            f"%v{number} = linalg.{_arithmetic(number)} "
            f"ins({source}, %y : {kind}, {kind}) outs(%e : {kind}) -> {kind}"
        )
    lines.append(f"return %v{n - 1} : {kind}")
    return _function("f", f"%x: {kind}, %y: {kind}", lines, f" -> {kind}")


def memref_chain(n: int) -> str:
    """The same on memrefs, with a buffer between each two."""
    kind = "memref<64x64xf32>"
    lines: list[str] = []
    for number in range(n):
        source = f"%b{number - 1}" if number else "%x"
        target = f"%b{number}" if number < n - 1 else "%z"
        if number < n - 1:
            lines.append(f"{target} = memref.alloc() : {kind}")
        lines.append(
            f"linalg.{_arithmetic(number)} ins({source}, %y : {kind}, {kind}) "
            f"outs({target} : {kind})"
        )
    return _function("f", f"%x: {kind}, %y: {kind}, %z: {kind}", [*lines, "return"])


def side_by_side(n: int) -> str:
    """Element-wise ops on arguments, which no other op writes."""
    kind = "memref<64x64xf32>"
    given = ["%x: " + kind, *(f"%{one}{i}: {kind}" for i in range(n) for one in "yz")]
    lines = [
        f"linalg.{_arithmetic(i)} ins(%x, %y{i} : {kind}, {kind}) outs(%z{i} : {kind})"
        for i in range(n)
    ]
    return _function("f", ", ".join(given), [*lines, "return"])


def matmul_chain(n: int) -> str:
    """Matmuls, each of the result of the one before by a matrix of its own."""
    kind = "tensor<64x64xf16>"
    given = ", ".join(["%a: " + kind, *(f"%w{i}: {kind}" for i in range(n))])
    lines = ["%zero = arith.constant 0.0 : f16"]
    for number in range(n):
        left = f"%p{number - 1}" if number else "%a"
        lines += _matmul(number, left, f"%w{number}", (kind, kind, kind))
    lines.append(f"return %p{n - 1} : {kind}")
    return _function("f", given, lines, f" -> {kind}")


def different_matmuls(n: int) -> str:
    """Independent matmuls, no two of the same shape."""
    kinds = [_shapes(number, "tensor") for number in range(n)]
    given = [f"%a{i}: {a}, %w{i}: {b}" for i, (a, b, _) in enumerate(kinds)]
    lines = ["%zero = arith.constant 0.0 : f16"]
    for number, types in enumerate(kinds):
        lines += _matmul(number, f"%a{number}", f"%w{number}", types)
    values = ", ".join(f"%p{i}" for i in range(n))
    results = ", ".join(c for _, _, c in kinds)
    lines.append(f"return {values} : {results}")
    return _function("f", ", ".join(given), lines, f" -> ({results})")


def equal_functions(n: int) -> str:
    """Functions of one matmul each, all alike."""
    return "".join(_one_matmul(number, 0) for number in range(n))


def different_functions(n: int) -> str:
    """Functions of one matmul each, no two of the same shape."""
    return "".join(_one_matmul(number, number) for number in range(n))


FAMILIES: dict[str, Callable[[int], str]] = {
    "element-wise ops, tensors": tensor_chain,
    "element-wise ops, memrefs": memref_chain,
    "element-wise ops, arguments": side_by_side,
    "matmuls in a chain": matmul_chain,
    "matmuls of different shapes": different_matmuls,
    "equal functions": equal_functions,
    "different functions": different_functions,
}


def compile_text(text: str) -> None:
    """Compile once, to a bundle in memory; remarks are not shown."""
    from alcop_mlir.compilation import compiler, inputs
    from alcop_mlir.schedule import Schedule

    options = compiler.Options(schedule=Schedule.parse(SCHEDULE))
    with contextlib.redirect_stderr(io.StringIO()):
        compiler.compile_source(inputs.read(text), options)


def measure(family: str, n: int) -> Record:
    """The CPU time of one compile."""
    text = FAMILIES[family](n)
    gc.collect()
    before = os.times()
    compile_text(text)
    after = os.times()
    own = after.user + after.system - before.user - before.system
    ptxas = sum(after[2:4]) - sum(before[2:4])
    return {"family": family, "n": n, "cpu_seconds": own, "ptxas_seconds": ptxas}


def memory_growth(compiles: int, samples: int = 10) -> list[Record]:
    """How much the process has grown after some of the compiles."""
    text = equal_functions(1)
    for _ in range(WARM_UP):
        compile_text(text)
    gc.collect()
    start = resident()
    found: list[Record] = []
    for done in range(1, compiles + 1):
        compile_text(text)
        if done % max(1, compiles // samples) == 0:
            _show(f"memory: {done} of {compiles} compiles")
            found.append({"compiles": done, "grown_mb": resident() - start})
    return found


def resident() -> float:
    """MB of memory that this process has; Linux only."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * _PAGE / _MEGABYTE


def draw(records: list[Record], path: Path) -> None:
    """Milliseconds per op over n, a line per family."""
    mpl = importlib.import_module("matplotlib")

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "alcop_mlir"  # the same records, the same SVG
    pyplot = importlib.import_module("matplotlib.pyplot")

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for family in FAMILIES:
        runs = [one for one in records if one.get("family") == family]
        line = [1e3 * one["cpu_seconds"] / one["n"] for one in runs]
        axes.plot([one["n"] for one in runs], line, "o-", label=family, markersize=4)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(COUNTS, [str(n) for n in COUNTS])
    axes.minorticks_off()
    axes.set_xlabel("n")
    axes.set_ylabel("CPU milliseconds per op, without ptxas")
    axes.legend(fontsize="small")
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=120, metadata=metadata)


def main() -> None:
    """Measure, print, store, draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--largest", type=int, default=COUNTS[-1])
    parser.add_argument(
        "--largest-different", type=int, default=COUNTS[-1], help="n of other shapes"
    )
    parser.add_argument("--compiles", type=int, default=2000, help="0: no memory")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    given = parser.parse_args()
    counts = [n for n in COUNTS if n <= given.largest]
    for family in FAMILIES:  # imports, tables, the first use of LLVM
        compile_text(FAMILIES[family](2))
    records: list[Record] = []
    for family in FAMILIES:
        for n in counts:
            if "different" in family and n > given.largest_different:
                continue
            _show(f"{family}: {n}")
            records.append(measure(family, n))
    _show("")
    print("CPU seconds, of which ptxas in brackets; below, ms per op without ptxas")
    print_table(["", *(f"n = {n}" for n in counts)], list(_rows(records, counts)))
    if given.compiles:
        growth = memory_growth(given.compiles)
        _show("")
        print(f"\nMB that {given.compiles} compiles of one matmul leave behind")
        numbers = [f"{one['grown_mb']:.1f}" for one in growth]
        print_table([str(one["compiles"]) for one in growth], [numbers])
        records += growth
    if given.plot is not None:
        draw(records, given.plot)
    print(f"\nrecords: {store('scaling', records)}")


def _rows(records: list[Record], counts: list[int]) -> Any:
    for family in FAMILIES:
        runs = [one for one in records if one["family"] == family]
        times = [
            f"{one['cpu_seconds'] + one['ptxas_seconds']:.2f} "
            f"({one['ptxas_seconds']:.2f})"
            for one in runs
        ]
        per_op = [one["cpu_seconds"] / one["n"] for one in runs]
        left_out = [""] * (len(counts) - len(runs))
        yield [family, *times, *left_out]
        yield ["  ms per op", *(f"{1e3 * one:.1f}" for one in per_op), *left_out]


def _matmul(number: int, left: str, right: str, types: Any) -> list[str]:
    a, b, c = types
    return [
        f"%e{number} = tensor.empty() : {c}",
        f"%f{number} = linalg.fill ins(%zero : f16) outs(%e{number} : {c}) -> {c}",
        f"%p{number} = linalg.matmul ins({left}, {right} : {a}, {b}) "
        f"outs(%f{number} : {c}) -> {c}",
    ]


def _one_matmul(number: int, shape: int) -> str:
    a, b, c = _shapes(shape, "memref")
    lines = [
        "%zero = arith.constant 0.0 : f16",
        f"linalg.fill ins(%zero : f16) outs(%c : {c})",
        f"linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c})",
        "return",
    ]
    return _function(f"f{number}", f"%a: {a}, %b: {b}, %c: {c}", lines)


def _shapes(number: int, kind: str) -> tuple[str, str, str]:
    """The types of A, B and C of matmul `number`."""
    m, n = _TILE * (1 + number % _ROWS), _TILE * (1 + number // _ROWS)
    return f"{kind}<{m}x64xf16>", f"{kind}<64x{n}xf16>", f"{kind}<{m}x{n}xf16>"


def _arithmetic(number: int) -> str:
    return ("add", "mul", "sub")[number % 3]


def _function(name: str, given: str, lines: list[str], results: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"func.func @{name}({given}){results} {{\n{body}\n}}\n"


def _show(what: str) -> None:
    """Progress on one line of stderr."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
