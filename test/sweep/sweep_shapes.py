"""Operands and sizes of each class of shapes."""

from __future__ import annotations

from dataclasses import dataclass

from sweep_cases import BYTES, LAYOUT_SHAPES, Case

PROMISED = ("run-time", "run-time m", "run-time batch", "open strides")


@dataclass(frozen=True)
class Shape:
    """The loops that index a contraction's operands, and their sizes.

    lhs, rhs, out: loops
    sizes:   of each loop, one dictionary per run of the program
    dynamic: loops whose size the program does not know
    promise: bytes that rows are promised to be a multiple of
    pitch:   elements between rows of matrices, beyond their length
    offset:  of matrices that are parts of larger ones, from the second row on; None
        where they are arguments themselves
    has_open_strides: whether the program does not know the pitch
    """

    lhs: str
    rhs: str
    out: str
    sizes: tuple[dict[str, int], ...]
    dynamic: str = ""
    promise: int = 0
    pitch: int = 0
    offset: int | None = None
    has_open_strides: bool = False


def shape(case: Case) -> Shape:
    """The shape of the case, for its tile and its types."""
    lhs, rhs, out = _operands(case)
    runs = _runs(case)
    is_open = case.shape.startswith("run-time")
    dynamic = "m" if case.shape == "run-time m" else "bmnk"
    return Shape(
        lhs,
        rhs,
        out,
        tuple({"b": 3, **sizes} for sizes in runs),
        dynamic=dynamic if is_open else "",
        promise=16 if case.shape in PROMISED else 0,
        pitch=2 * _vector(case) if case.shape in LAYOUT_SHAPES else 0,
        offset={"part": _vector(case), "odd part": 3}.get(case.shape),
        has_open_strides=case.shape == "open strides",
    )


def _operands(case: Case) -> tuple[str, str, str]:
    lhs = "mk" if case.layout[0] == "n" else "km"
    rhs = "kn" if case.layout[1] == "n" else "nk"
    match case.shape:
        case "matrix-vector":
            return lhs, "k", "m"
        case "vector-matrix":
            return "k", rhs, "n"
        case "batch" | "run-time batch":
            return f"b{lhs}", f"b{rhs}", "bmn"
        case "broadcast lhs":
            return lhs, f"b{rhs}", "bmn"
        case "broadcast rhs":
            return f"b{lhs}", rhs, "bmn"
        case "batch-reduce":
            return f"b{lhs}", f"b{rhs}", "mn"
        case "transposed output":
            return lhs, rhs, "nm"
    return lhs, rhs, "mn"


def _vector(case: Case) -> int:
    """Elements in 16 bytes, of whichever array has the narrowest ones."""
    given = [*case.types, "f16" if case.fusion == "convert lhs" else case.kind]
    if case.kind == "i8" or case.fusion in ("dequantise rhs", "both"):
        given.append("i8")
    return 16 // min(BYTES[kind] for kind in given)


def _runs(case: Case) -> list[dict[str, int]]:
    """Sizes; several for a program that takes any."""
    m, n, k = case.block
    v = _vector(case)
    odd = {"m": m + 3, "n": n + 5, "k": 2 * k + 7}
    plain = {"m": m, "n": 2 * n, "k": 4 * k}
    changes: dict[str, dict[str, int]] = {
        "ragged m": {"m": 2 * m + v},
        "ragged n": {"n": n + v},
        "ragged k": {"k": 5 * k + v},
        "ragged": {"m": m + v, "n": n + 3 * v, "k": 3 * k - v},
        "odd rows": odd,
        "rows of 4 bytes": {name: size - size % 4 + 4 for name, size in odd.items()},
        "one element": {"m": 1, "n": 1, "k": 1},
        "one row": {"m": 1},
        "one column": {"n": 1},
        "one k tile": {"k": k},
        "short k": {"k": max(1, case.stages[0] - 1) * k},
        "empty m": {"m": 0},
        "empty n": {"n": 0},
        "empty k": {"k": 0},
    }
    if case.shape in ("run-time", "run-time batch"):
        return [
            plain,
            {"m": v, "n": n + v, "k": k},
            {"m": 2 * m + v, "n": v, "k": 6 * k + v, "b": 2},
            {"m": m, "n": n, "k": 0, "b": 1},
        ]
    if case.shape == "run-time m":
        return [plain | {"m": rows} for rows in (m, 3 * m - v, v, 0)]
    if case.shape == "run-time unpromised":
        return [odd, {"m": m, "n": n, "k": 3 * k}, {"m": 1, "n": 7, "k": 5}]
    return [plain | changes.get(case.shape, {})]
