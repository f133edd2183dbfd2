"""The scalar code of a case's contraction, operand transforms and epilogue."""

from __future__ import annotations

from dataclasses import dataclass

from sweep_cases import Case

WIDE = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32", "i32": "i32"}
SCALE = "0.125"


@dataclass(frozen=True)
class Stage:
    """An element-wise step: `%y`, of `dtype`, from `%x`, `%p` and, in place, `%o`.

    extra: loops and type of the array that `%p` is an element of
    """

    lines: tuple[str, ...]
    dtype: str
    extra: tuple[str, str] | None = None
    in_place: bool = False


def result_type(case: Case) -> str:
    """The type of the contraction's result where it has a buffer of its own."""
    return case.types[1] if case.fusion == "half relu" else WIDE[case.kind]


def multiply_and_add(case: Case, output: str) -> list[str]:
    """`o + x * p` in the wider of the types, rounded to that of the output."""
    wide, suffix = WIDE[case.kind], "i" if case.kind == "i8" else "f"
    kinds = {"x": case.kind, "p": case.kind, "o": output}
    lines = [_widened(name, kind, wide) for name, kind in kinds.items()]
    x, p, o = (f"%{n}" if kind == wide else f"%{n}_w" for n, kind in kinds.items())
    lines += [
        f"%m = arith.mul{suffix} {x}, {p} : {wide}",
        f"%s = arith.add{suffix} {o}, %m : {wide}",
    ]
    if output != wide:
        lines.append(f"%y = arith.truncf %s : {wide} to {output}")
    result = "%s" if output == wide else "%y"
    return [line for line in lines if line] + [f"yield {result} : {output}"]


def _widened(name: str, kind: str, wide: str) -> str:
    if kind == wide:
        return ""
    op = "extsi" if wide == "i32" else "extf"
    return f"%{name}_w = arith.{op} %{name} : {kind} to {wide}"


def positive(dtype: str) -> Stage:
    """Negative elements become 0."""
    op, zero = ("maxsi", "0") if dtype.startswith("i") else ("maximumf", "0.0")
    return Stage(
        (
            f"%z = arith.constant {zero} : {dtype}",
            f"%y = arith.{op} %x, %z : {dtype}",
        ),
        dtype,
    )


def converted(given: str, dtype: str) -> Stage:
    """Converted from one type of floats to another."""
    op = "truncf" if given == "f32" else "extf"
    return Stage((f"%y = arith.{op} %x : {given} to {dtype}",), dtype)


def dequantised(dtype: str) -> Stage:
    """Converted from i8, and scaled."""
    return Stage(
        (
            f"%f = arith.sitofp %x : i8 to {dtype}",
            f"%c = arith.constant {SCALE} : {dtype}",
            f"%y = arith.mulf %f, %c : {dtype}",
        ),
        dtype,
    )


def epilogue(case: Case, out: str) -> list[Stage]:
    """The ops on the contraction's result; the last is of the output's type."""
    if case.fusion == "half relu":
        return [positive(case.types[1])]
    if case.kind == "i8":
        return _integer_epilogue(case.fusion, out)
    stages = _float_epilogue(case.fusion, out, case.types[1])
    if not stages or case.types[1] == "f32":
        return stages
    last = stages[-1]
    lines = [line.replace("%y =", "%w =") for line in last.lines]
    lines.append(f"%y = arith.truncf %w : f32 to {case.types[1]}")
    return [*stages[:-1], Stage(tuple(lines), case.types[1], last.extra)]


def _float_epilogue(fusion: str, out: str, dtype: str) -> list[Stage]:
    """On f32."""
    bias = Stage(("%y = arith.addf %x, %p : f32",), "f32", ("n", "f32"))
    residual = _added(dtype, "%p", (out, dtype))
    scaled = ("%c = arith.constant 0.125 : f32", "%y = arith.mulf %x, %c : f32")
    silu = (
        "%one = arith.constant 1.0 : f32",
        "%n = arith.negf %x : f32",
        "%e = math.exp %n : f32",
        "%d = arith.addf %e, %one : f32",
        "%y = arith.divf %x, %d : f32",
    )
    scalar = Stage(("%y = arith.mulf %x, %p : f32",), "f32", ("", "f32"))
    table = {
        "bias": [bias],
        "column bias": [Stage(bias.lines, "f32", ("m", "f32"))],
        "relu": [positive("f32")],
        "kept": [positive("f32")],
        "residual": [residual],
        "in place": [_added(dtype, "%o", None)],
        "scale": [Stage(scaled, "f32")],
        "scalar": [scalar],
        "silu": [Stage(silu, "f32")],
        "chain": [Stage(scaled, "f32"), positive("f32"), residual],
    }
    return table.get(fusion, [])


def _added(dtype: str, name: str, extra: tuple[str, str] | None) -> Stage:
    """Plus an element of the output's type."""
    if dtype == "f32":
        return Stage((f"%y = arith.addf %x, {name} : f32",), "f32", extra)
    lines = (
        f"%v = arith.extf {name} : {dtype} to f32",
        "%y = arith.addf %x, %v : f32",
    )
    return Stage(lines, "f32", extra)


def _integer_epilogue(fusion: str, out: str) -> list[Stage]:
    """On i32; scaled to f16, or back to i8."""
    add = ("%y = arith.addi %x, %p : i32",)
    scaled = ("%f = arith.sitofp %x : i32 to f32",)
    half = "%y = arith.truncf %g : f32 to f16"
    by_array = (*scaled, "%g = arith.mulf %f, %p : f32", half)
    by_constant = (
        *scaled,
        "%c = arith.constant 0.0009765625 : f32",
        "%g = arith.mulf %f, %c : f32",
        half,
    )
    narrowed = (
        *by_constant[:3],
        "%i = arith.fptosi %g : f32 to i32",
        "%low = arith.constant -128 : i32",
        "%high = arith.constant 127 : i32",
        "%l = arith.maxsi %i, %low : i32",
        "%h = arith.minsi %l, %high : i32",
        "%y = arith.trunci %h : i32 to i8",
    )
    table = {
        "bias": [Stage(add, "i32", ("n", "i32"))],
        "column bias": [Stage(by_array, "f16", ("m", "f32"))],
        "relu": [positive("i32")],
        "kept": [positive("i32")],
        "residual": [Stage(add, "i32", (out, "i32"))],
        "in place": [Stage(("%y = arith.addi %x, %o : i32",), "i32")],
        "scale": [Stage(by_constant, "f16")],
        "scalar": [Stage(by_array, "f16", ("", "f32"))],
        "silu": [Stage(narrowed, "i8")],
        "chain": [
            Stage(add, "i32", (out, "i32")),
            positive("i32"),
            Stage(narrowed, "i8"),
        ],
    }
    return table.get(fusion, [])
