"""Random contractions by wgmma: `python test/compilation/fuzz_warp_roles.py`.

Each form is a contraction for sm_90a (types, layouts, sizes that tiles divide or do
not, known or open, batches, what C begins with, computed operands, epilogues) and a
schedule with warps in roles (tile, mode, cluster, stages, raster, parts of K). The
emulator finds no hazard, with copies that land early or late and warps in any order;
results of small whole numbers are NumPy's, and those of random numbers have the same
bits with other stages of the same engine.

What a schedule does not fit is refused, and counted. The state is a file with a line
per form, so that a run goes on where the last stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from test_warp_roles import LAYOUTS, MODES

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import AlcopError, CompileError, ConfigError
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Partial
from alcop_mlir.target import find_target

Array = np.ndarray
E4, E5 = "f8E4M3FN", "f8E5M2"
TYPES = [(kind, kind) for kind in ("f16", "bf16", "f32", E4)] + [(E4, E5), ("i8", "i8")]
BYTES = {"f16": 2, "bf16": 2, "f32": 4, E4: 1, E5: 1, "i8": 1, "i32": 4}
SMS = 132
MANY = SMS + 5  # tiles, so that blocks go through several


@dataclass(frozen=True)
class Form:
    """C = A * B, and what is around it.

    adds:      to what C holds
    computed:  of A, before it is multiplied: "", "scaled", "activated"
    epilogue:  what is done to accumulators, in this order
    out:       the type of C
    """

    types: tuple[str, str]
    layout: str
    sizes: tuple[int, int, int]
    batch: int
    is_open: bool
    adds: bool
    computed: str
    epilogue: tuple[str, ...]
    out: str
    schedule: str

    @property
    def wide(self) -> str:
        """The type of accumulators."""
        return "i32" if self.types[0] == "i8" else "f32"

    @property
    def has_aligned_rows(self) -> bool:
        """Whether all rows of all arrays are multiples of 16 bytes."""
        m, n, k = self.sizes
        at, (lhs, rhs) = {"m": m, "n": n, "k": k}, LAYOUTS[self.layout]
        kinds = (*self.types, self.wide, self.wide, self.out)
        rows = zip((lhs, rhs, "m", "n", "n"), kinds, strict=True)
        return all(at[dims[-1]] * BYTES[kind] % 16 == 0 for dims, kind in rows)


def draw_form(draw: random.Random) -> Form:
    """Any; some do not fit."""
    types = draw.choice(TYPES)
    halves = BYTES[types[0]] == 2
    layout = draw.choice([*LAYOUTS] if halves else ["nt"])
    per_row = 16 // BYTES[types[0]]
    wide = "i32" if types[0] == "i8" else "f32"
    m, n, k = draw.randint(1, 300), draw.randint(1, 200), draw.randint(1, 400)
    if draw.random() < 0.9:  # rows that maps can have
        m, n, k = (-(-size // per_row) * per_row for size in (m, n, k))
        n = -(-n // 8) * 8
    mode = draw.choice(["cooperative"] * 3 + ["pingpong"])
    schedule = draw_schedule(draw, mode, per_row)
    if draw.random() < 0.12:
        m, n, k = _rows(schedule) * MANY, 16, min(k, 12 * per_row)
    steps = ("bias", "column", "residual", "activated", "scaled")
    epilogue = [one for one in steps if draw.random() < 0.25] if wide == "f32" else []
    out = draw.choice([wide, "f16", "bf16", E4] if wide == "f32" else [wide])
    return Form(
        types,
        layout,
        (m, n, k),
        draw.choice([0, 0, 0, 2, 3]) if m < 400 else 0,
        draw.random() < 0.2,
        draw.random() < 0.2,
        draw.choice(["", "", "", "scaled", "activated"]) if halves else "",
        tuple(epilogue),
        out,
        schedule,
    )


def draw_schedule(draw: random.Random, mode: str, per_row: int) -> str:
    """The text, without stages."""
    groups = 1 if mode == "pingpong" else draw.choice([1, 2, 2, 3])
    high, beside = draw.choice([1, 1, 2]), 1
    columns = draw.choice([16, 32, 48, 64, 96, 128, 128, 192, 256])
    if columns % 32 == 0 and groups == 2 and draw.random() < 0.15:
        groups, beside = 1, 2
    step = per_row * draw.choice([2, 4, 8, 8, 16])
    text = f"block={64 * groups * high},{columns},{step} "
    text += f"warp={16 * high},{columns // beside} engine=wgmma mode={mode}"
    for name, values, share in (
        ("cluster", [2], 0.2),
        ("raster", [2, 4, 8], 0.3),
        ("split_k", [2, 3], 0.15),
    ):
        if draw.random() < share:
            text += f" {name}={draw.choice(values)}"
    return text


def _rows(schedule: str) -> int:
    return int(schedule.partition("block=")[2].partition(",")[0])


def text_of(form: Form) -> str:
    """As MLIR, on tensors."""
    m, n, k = form.sizes
    at = {"m": m, "n": n, "k": k, "b": form.batch}
    before = "b" if form.batch else ""
    lhs, rhs = (before + dims for dims in LAYOUTS[form.layout])
    both = before + "mn"

    def kind(dims: str, element: str) -> str:
        extents = ["?" if form.is_open else str(at[dim]) for dim in dims]
        return f"tensor<{'x'.join([*extents, element])}>"

    def named(*of: str) -> str:
        loops = ", ".join(before + ("mnk" if "k" in "".join(of) else "mn"))
        maps = [f"affine_map<({loops}) -> ({', '.join(dims)})>" for dims in of]
        kinds = ['"parallel"'] * len(both) + ['"reduction"'] * ("k" in loops)
        listed = ", ".join(maps), ", ".join(kinds)
        return "indexing_maps = [{}], iterator_types = [{}]".format(*listed)

    a, b = form.types
    wide, sums, result = form.wide, kind(both, form.wide), kind(both, form.out)
    zero = f"arith.constant {'0' if wide == 'i32' else '0.0'} : {wide}"
    given = [("%A", kind(lhs, a)), ("%B", kind(rhs, b))]
    given += [("%Cin", sums)] * form.adds
    extra = {"bias": "n", "column": "m", "residual": both}
    read = [one for one in form.epilogue if one in extra]
    given += [(f"%{one}", kind(extra[one], wide)) for one in read]
    is_promised = form.is_open and form.has_aligned_rows
    promise = " {alcop.row_alignment = 16}" if is_promised else ""
    arguments = ", ".join(f"{name}: {one}{promise}" for name, one in given)
    lines = [f"func.func @f({arguments}) -> {result} {{", f"%z = {zero}"]
    lines += _dims(form, lhs, rhs)
    dynamic = ", ".join(f"%d{dim}" for dim in both) if form.is_open else ""
    lines.append(f"%e = tensor.empty({dynamic}) : {sums}")
    start = "%Cin"
    if not form.adds:
        start = "%zeros"
        fill = f"linalg.fill ins(%z : {wide}) outs(%e : {sums})"
        lines.append(f"%zeros = {fill} -> {sums}")
    lines += [
        f"%sums = linalg.generic {{{named(lhs, rhs, both)}}} ins(%A, %B : "
        f"{kind(lhs, a)}, {kind(rhs, b)}) outs({start} : {sums}) {{",
        f"^bb0(%a: {a}, %b: {b}, %c: {wide}):",
        *_product(form),
        f"}} -> {sums}",
    ]
    if not form.epilogue and form.out == wide:
        return "\n".join([*lines, f"return %sums : {sums}", "}"])
    ins = ", ".join(["%sums", *(f"%{one}" for one in read)])
    kinds = ", ".join([sums, *(kind(extra[one], wide) for one in read)])
    values = ", ".join(f"%v_{one}: {wide}" for one in read)
    lines += [
        f"%o = tensor.empty({dynamic}) : {result}",
        f"%r = linalg.generic {{{named(both, *(extra[one] for one in read), both)}}} "
        f"ins({ins} : {kinds}) outs(%o : {result}) {{",
        f"^bb0(%s: {wide}, {values}{', ' if values else ''}%old: {form.out}):",
        *_steps(form),
        f"}} -> {result}",
        f"return %r : {result}",
        "}",
    ]
    return "\n".join(lines)


def _dims(form: Form, lhs: str, rhs: str) -> list[str]:
    """The sizes of C, where they are known at run time only."""
    if not form.is_open:
        return []
    element_a, element_b = form.types
    unknown = {name: "?x" * len(dims) for name, dims in (("A", lhs), ("B", rhs))}
    lines = []
    for dim, name, dims, element in (
        *((("b", "A", lhs, element_a),) if form.batch else ()),
        ("m", "A", lhs, element_a),
        ("n", "B", rhs, element_b),
    ):
        lines.append(f"%i{dim} = arith.constant {dims.index(dim)} : index")
        kind = f"tensor<{unknown[name]}{element}>"
        lines.append(f"%d{dim} = tensor.dim %{name}, %i{dim} : {kind}")
    return lines


def _product(form: Form) -> list[str]:
    a, b = form.types
    lines, left, right = [], "%a", "%b"
    if form.computed == "scaled":
        lines += [f"%two = arith.constant 2.0 : {a}", f"%x = arith.mulf %a, %two : {a}"]
        left = "%x"
    elif form.computed == "activated":
        lines.append(f"%no = arith.constant 0.0 : {a}")
        lines.append(f"%x = arith.maximumf %a, %no : {a}")
        left = "%x"
    letter = "i" if form.wide == "i32" else "f"
    if a != form.wide:
        extend = "arith.extsi" if letter == "i" else "arith.extf"
        lines.append(f"%wa = {extend} {left} : {a} to {form.wide}")
        lines.append(f"%wb = {extend} {right} : {b} to {form.wide}")
        left, right = "%wa", "%wb"
    return [
        *lines,
        f"%p = arith.mul{letter} {left}, {right} : {form.wide}",
        f"%q = arith.add{letter} %c, %p : {form.wide}",
        f"linalg.yield %q : {form.wide}",
    ]


def _steps(form: Form) -> list[str]:
    lines, value = [], "%s"
    for number, step in enumerate(form.epilogue):
        made = f"%y{number}"
        if step == "activated":
            lines.append(f"{made} = arith.maximumf {value}, %z : f32")
        elif step == "scaled":
            lines.append("%half = arith.constant 0.5 : f32")
            lines.append(f"{made} = arith.mulf {value}, %half : f32")
        else:
            lines.append(f"{made} = arith.addf {value}, %v_{step} : f32")
        value = made
    if form.out != form.wide:
        lines.append(f"%t = arith.truncf {value} : f32 to {form.out}")
        value = "%t"
    return [*lines, f"linalg.yield {value} : {form.out}"]


def data(form: Form, is_exact: bool) -> list[Array]:
    """The arrays that are given, by which nothing is rounded before the last step."""
    m, n, k = form.sizes
    at = {"m": m, "n": n, "k": k, "b": form.batch}
    draw = np.random.default_rng(m + n + k)
    before = "b" if form.batch else ""
    lhs, rhs = (before + dims for dims in LAYOUTS[form.layout])
    dims = [(lhs, form.types[0]), (rhs, form.types[1])]
    dims += [(before + "mn", form.wide)] * form.adds
    extra = {"bias": "n", "column": "m", "residual": before + "mn"}
    dims += [(extra[one], form.wide) for one in form.epilogue if one in extra]
    found = []
    for letters, kind in dims:
        shape = tuple(at[dim] for dim in letters)
        if is_exact or dtypes.is_integer(kind):
            values = draw.integers(-1, 2, shape).astype(np.float64)
        else:
            values = draw.standard_normal(shape)
        found.append(dtypes.encode(values, kind))
    return found


def expected(form: Form, given: list[Array]) -> Array:
    """By NumPy, in float64."""
    before = "b" if form.batch else ""
    lhs, rhs = (before + dims for dims in LAYOUTS[form.layout])
    operands = zip(given[:2], form.types, strict=True)
    a, b = (dtypes.decode(one, kind) for one, kind in operands)
    rest = [dtypes.decode(one, form.wide) for one in given[2:]]
    if form.computed == "scaled":
        a = a * 2
    elif form.computed == "activated":
        a = np.maximum(a, 0)
    value = np.einsum(f"{lhs},{rhs}->{before}mn", a, b, optimize=True)
    if form.adds:
        value = value + rest.pop(0)
    for step in form.epilogue:
        if step == "activated":
            value = np.maximum(value, 0)
        elif step == "scaled":
            value = value * 0.5
        else:
            other = rest.pop(0)
            value = value + (other[:, None] if step == "column" else other)
    return dtypes.encode(value, form.out)


def compiled(form: Form, stages: str) -> tuple[Bundle, str]:
    """The bundle, and the remarks."""
    options = compiler.Options(
        target=find_target("sm_90a"),
        schedule=Partial.parse(f"{form.schedule} stages={stages}"),
        use_ptxas=False,
        allow_tf32=True,
        variants=1,
    )
    with contextlib.redirect_stderr(io.StringIO()) as said:
        bundle = compiler.compile_source(inputs.read(text_of(form)), options)
    return bundle, said.getvalue()


def run(bundle: Bundle, form: Form, given: list[Array], mode: tuple[str, str]) -> Array:
    """C, of which nothing was written before."""
    m, n, _ = form.sizes
    shape = (form.batch, m, n) if form.batch else (m, n)
    out = dtypes.unwritten(shape, form.out)
    emulation = Emulation(EmulatorOptions(visibility=mode[0], schedule=mode[1]))
    Program(bundle, emulation=emulation)(*given, out)
    return out


def bits(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


def try_form(seed: int) -> Counter[str]:
    """What was seen; AssertionError where something is wrong."""
    draw, seen = random.Random(seed), Counter[str]()
    form = draw_form(draw)
    stages = draw.sample(["2,1", "3,1", "3,2", "4,2", "4,3", "5,3", "5,2"], 3)
    where = f"seed {seed}, {form}, stages {stages}"
    mode = draw.choice(MODES)
    found: list[Array] = []
    for some in stages:
        try:
            bundle, _ = compiled(form, some)
        except (CompileError, ConfigError) as error:
            if "\n" in str(error):
                raise AssertionError(f"{where}: {error}") from error
            seen["refused"] += 1
            seen[f"refused: {str(error).rpartition(': ')[2][-60:]}"] += 1
            continue
        kernels = [kernel for one in bundle.functions for kernel in one.kernels]
        text = "".join(bundle.code_of(kernel).ptx for kernel in kernels)
        try:
            if not found:
                given = data(form, is_exact=True)
                got = run(bundle, form, given, mode)
                np.testing.assert_array_equal(bits(got), bits(expected(form, given)))
            found.append(run(bundle, form, data(form, is_exact=False), mode))
        except (AlcopError, AssertionError) as error:
            raise AssertionError(f"{where}, stages={some}, {mode}: {error}") from error
        seen["kernels"] += 1
        engine = "wgmma" if "wgmma.mma_async" in text else "mma.sync"
        for feature in (engine, *_features(form, text)):
            seen[feature] += 1
        if engine == "mma.sync":
            return seen
    for other in found[1:]:
        np.testing.assert_array_equal(bits(other), bits(found[0]), where)
    seen["same bits"] += len(found) > 1
    return seen


def _features(form: Form, text: str) -> list[str]:
    there = {
        "multicast": "multicast" in text,
        "C by TMA": "cp.async.bulk.tensor.2d.global" in text
        or "cp.async.bulk.tensor.3d.global" in text,
        "pingpong": "pingpong" in form.schedule,
        "open": form.is_open,
        "batch": form.batch > 0,
        "computed": bool(form.computed),
        "epilogue": bool(form.epilogue),
        "adds": form.adds,
        "persistent": form.sizes[0] >= SMS * 64,
        "split_k": "split_k" in form.schedule,
        form.types[0]: True,
    }
    return [name for name, holds in there.items() if holds]


def main(arguments: Sequence[str]) -> int:
    """Exit status: 1 if a form failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--forms", type=int, default=200)
    parser.add_argument("--state", type=Path, default=Path("build/fuzz-roles.jsonl"))
    options = parser.parse_args(arguments)
    options.state.parent.mkdir(parents=True, exist_ok=True)
    lines = options.state.read_text().splitlines() if options.state.exists() else []
    total, wrong = Counter[str](), 0
    for line in map(json.loads, lines):
        total.update(line["seen"])
        wrong += bool(line["wrong"])
    with options.state.open("a", encoding="utf-8") as state:
        for seed in range(len(lines), options.forms):
            seen, why = Counter[str](), ""
            try:
                seen = try_form(seed)
            except AssertionError as error:
                why, wrong = str(error), wrong + 1
                print(why, flush=True)
            total.update(seen)
            print(json.dumps({"seen": seen, "wrong": why}), file=state, flush=True)
    print(", ".join(f"{name}: {count}" for name, count in sorted(total.items())))
    print(f"{wrong} forms are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
