"""End to end: ops fused into a contraction compute the right numbers, no hazard.

Every program is one kernel; the emulator raises on hazards; expected values are NumPy's
in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

Array = np.ndarray
TILE = "block=64,64,32 warp=32,32"
DTYPES = {"f16": "f2", "f32": "f4", "i8": "i1", "i32": "i4"}
erf = np.vectorize(math.erf)


@dataclass(frozen=True)
class Step:
    """One element-wise op on the contraction's result and on other arrays.

    body:    its ops; %x is the contraction's element, %p and %q those of `others`, and
             %r the result
    others:  name, element type and loops ("mn", "n", "b", "") of other arrays
    compute: the same on float64 arrays that broadcast
    out:     element type of the result
    """

    body: str
    compute: Callable[..., Array]
    others: tuple[tuple[str, str, str], ...] = ()
    out: str = "f32"


BIAS = Step("%r = arith.addf %x, %p : f32", np.add, (("bias", "f32", "n"),))
ROW_BIAS = Step("%r = arith.addf %x, %p : f32", np.add, (("rows", "f32", "m"),))
RESIDUAL = Step("%r = arith.addf %x, %p : f32", np.add, (("residual", "f32", "mn"),))
RELU = Step(
    """%z = arith.constant 0.0 : f32
       %r = arith.maximumf %x, %z : f32""",
    lambda x: np.maximum(x, 0),
)
TO_F16 = Step("%r = arith.truncf %x : f32 to f16", lambda x: x, out="f16")
HALF_RESIDUAL = Step(
    """%w = arith.extf %p : f16 to f32
       %s = arith.addf %x, %w : f32
       %r = arith.truncf %s : f32 to f16""",
    np.add,
    (("residual", "f16", "mn"),),
    "f16",
)
SCALE = Step("%r = arith.mulf %x, %p : f32", np.multiply, (("scale", "f32", ""),))
EXP = Step("%r = math.exp %x : f32", np.exp)
TANH = Step("%r = math.tanh %x : f32", np.tanh)
SIGMOID = Step(
    """%o = arith.constant 1.0 : f32
       %n = arith.negf %x : f32
       %e = math.exp %n : f32
       %d = arith.addf %e, %o : f32
       %r = arith.divf %o, %d : f32""",
    lambda x: 1 / (1 + np.exp(-x)),
)
SILU = Step(
    """%o = arith.constant 1.0 : f32
       %n = arith.negf %x : f32
       %e = math.exp %n : f32
       %d = arith.addf %e, %o : f32
       %r = arith.divf %x, %d : f32""",
    lambda x: x / (1 + np.exp(-x)),
)
GELU = Step(
    """%h = arith.constant 0.5 : f32
       %o = arith.constant 1.0 : f32
       %c = arith.constant 0.707106769 : f32
       %s = arith.mulf %x, %c : f32
       %e = math.erf %s : f32
       %t = arith.addf %e, %o : f32
       %u = arith.mulf %x, %h : f32
       %r = arith.mulf %u, %t : f32""",
    lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
)
CLIP_BY_SELECT = Step(
    """%l = arith.constant 1.0 : f32
       %g = arith.cmpf ogt, %x, %l : f32
       %r = arith.select %g, %l, %x : f32""",
    lambda x: np.minimum(x, 1),
)


@dataclass(frozen=True)
class Fused:
    """Steps one after the other on C = A * B, each with an output of its own.

    sizes:   of m, n, k, and b where there is a batch
    dynamic: letters whose size the program does not know
    kind:    of A and B
    keeps_c: whether C is an output, too
    promise: alcop.row_alignment of all arrays with rows, in bytes
    """

    steps: tuple[Step, ...]
    sizes: dict[str, int]
    dynamic: str = ""
    kind: str = "f16"
    c: str = "f32"
    keeps_c: bool = False
    promise: int = 0

    @property
    def loops(self) -> str:
        return "bmn" if "b" in self.sizes else "mn"

    @property
    def others(self) -> list[tuple[str, str, str]]:
        return [
            (f"{name}{number}", kind, loops)
            for number, step in enumerate(self.steps)
            for name, kind, loops in step.others
        ]

    def tensor(self, loops: str, kind: str) -> str:
        shape = "".join(
            "?x" if loop in self.dynamic else f"{self.sizes[loop]}x" for loop in loops
        )
        return f"tensor<{shape}{kind}>"

    def text(self) -> str:
        batch = "b" * ("b" in self.sizes)
        a, b = (
            self.tensor(f"{batch}mk", self.kind),
            self.tensor(f"{batch}kn", self.kind),
        )
        c, last = self.tensor(self.loops, self.c), self.steps[-1].out
        promised = f" {{alcop.row_alignment = {self.promise} : i64}}"
        promised = promised if self.promise else ""
        given = [f"%A: {a}{promised}", f"%B: {b}{promised}"]
        given += [
            f"%{name}: {self.tensor(loops, k)}{promised if 'n' in loops else ''}"
            for name, k, loops in self.others
        ]
        results = [self.tensor(self.loops, last)] + [c] * self.keeps_c
        returned = [f"%v{len(self.steps)}"] + ["%v0"] * self.keeps_c
        name = "batch_matmul" if batch else "matmul"
        zero = "0" if self.c == "i32" else "0.0"
        return f"""
          func.func @fused({", ".join(given)}) -> ({", ".join(results)}) {{
            %zero = arith.constant {zero} : {self.c}
            {self.dims()}
            {self.empty("%space", self.c)}
            %start = linalg.fill ins(%zero : {self.c}) outs(%space : {c}) -> {c}
            %v0 = linalg.{name} ins(%A, %B : {a}, {b}) outs(%start : {c}) -> {c}
            {"".join(self.step(number) for number in range(len(self.steps)))}
            return {", ".join(returned)} : {", ".join(results)}
          }}"""

    def dims(self) -> str:
        """The sizes of C that are known at run time only."""
        lines = []
        for loop, (array, number) in {"m": ("A", 0), "n": ("B", 1)}.items():
            if loop in self.dynamic:
                kind = self.tensor("mk" if array == "A" else "kn", self.kind)
                lines.append(f"%i{loop} = arith.constant {number} : index")
                lines.append(f"%d{loop} = tensor.dim %{array}, %i{loop} : {kind}")
        return "\n".join(lines)

    def empty(self, name: str, kind: str) -> str:
        sizes = ", ".join(f"%d{loop}" for loop in self.loops if loop in self.dynamic)
        return f"{name} = tensor.empty({sizes}) : {self.tensor(self.loops, kind)}"

    def step(self, number: int) -> str:
        step = self.steps[number]
        before = self.steps[number - 1].out if number else self.c
        operands = [(f"%v{number}", before, self.loops)]
        operands += [(f"%{n}{number}", k, loops) for n, k, loops in step.others]
        names = ", ".join(name for name, _, _ in operands)
        kinds = ", ".join(self.tensor(loops, kind) for _, kind, loops in operands)
        space = ", ".join(self.loops)
        maps = ", ".join(
            f"affine_map<({space}) -> ({', '.join(loops)})>"
            for loops in [*(loops for _, _, loops in operands), self.loops]
        )
        elements = ", ".join(
            f"%{letter}: {kind}"
            for letter, (_, kind, _) in zip("xpq", operands, strict=False)
        )
        parallel = ", ".join(['"parallel"'] * len(self.loops))
        result = self.tensor(self.loops, step.out)
        return f"""
            {self.empty(f"%space{number}", step.out)}
            %v{number + 1} = linalg.generic {{
                indexing_maps = [{maps}], iterator_types = [{parallel}]}}
              ins({names} : {kinds}) outs(%space{number} : {result}) {{
            ^bb0({elements}, %old: {step.out}):
              {step.body}
              linalg.yield %r : {step.out}
            }} -> {result}
            """

    def arrays(self, sizes: dict[str, int]) -> list[Array]:
        """A, B, the other arrays, the result and perhaps C."""
        random = np.random.default_rng(sum(sizes.values()))
        batch = "b" * ("b" in sizes)

        def make(loops: str, kind: str) -> Array:
            shape = [sizes[loop] for loop in loops]
            if kind in ("i8", "i32"):
                return random.integers(-8, 8, shape).astype(DTYPES[kind])
            return np.array(random.uniform(-1, 1, shape), DTYPES[kind])

        inputs_ = [make(f"{batch}mk", self.kind), make(f"{batch}kn", self.kind)]
        inputs_ += [make(loops, kind) for _, kind, loops in self.others]
        shape = [sizes[loop] for loop in self.loops]
        outputs = [self.steps[-1].out] + [self.c] * self.keeps_c
        return inputs_ + [np.full(shape, 99, DTYPES[kind]) for kind in outputs]

    def expected(self, arrays: list[Array]) -> list[Array]:
        """Of the result, and of C."""
        a, b, *others = (array.astype("f8") for array in arrays)
        value = matmul = a @ b
        rest = iter(zip(self.others, others, strict=False))
        for step in self.steps:
            given = [
                _broadcast(array, loops, self.loops)
                for (_, _, loops), array in (next(rest) for _ in step.others)
            ]
            value = step.compute(value, *given)
        return [value, matmul][: 1 + self.keeps_c]


def _broadcast(array: Array, loops: str, to: str) -> Array:
    shape = iter(array.shape)
    return array.reshape([next(shape) if loop in loops else 1 for loop in to])


def compiled(program: Fused, schedule: str) -> Program:
    options = compiler.Options(schedule=Schedule.parse(schedule), use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(program.text()), options)
    (function,) = bundle.functions
    (launch,) = function.launches
    assert all(len(variant.kernels) == 1 for variant in launch.variants), "not fused"
    assert not function.intermediates, "an array in between is left"
    return Program(bundle, device="emulator")


def check(program: Fused, kernel: Program, sizes: dict[str, int] | None = None) -> None:
    """Run on the emulator; compare with float64."""
    arrays = program.arrays(sizes or program.sizes)
    expected = program.expected(arrays)
    kernel(*arrays)
    results = arrays[-len(expected) :]
    for result, value in zip(results, expected, strict=True):
        bits = 2.0**-10 if result.dtype == np.float16 else 2.0**-18
        np.testing.assert_allclose(result, value, rtol=bits, atol=bits)


WHOLE = {"m": 128, "n": 64, "k": 96}
RAGGED = {"m": 75, "n": 100, "k": 40}
ODD = {"m": 33, "n": 37, "k": 21}
CHAINS = {
    "bias": (BIAS,),
    "rows": (ROW_BIAS,),
    "residual": (RESIDUAL,),
    "scale": (SCALE,),
    "relu": (RELU,),
    "select": (CLIP_BY_SELECT,),
    "exp": (EXP,),
    "tanh": (TANH,),
    "sigmoid": (SIGMOID,),
    "silu": (SILU,),
    "gelu": (GELU,),
    "convert": (TO_F16,),
    "half-residual": (HALF_RESIDUAL,),
    "bias-relu-convert": (BIAS, RELU, TO_F16),
    "all": (SCALE, BIAS, ROW_BIAS, GELU, RESIDUAL, TO_F16),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("sizes", [WHOLE, RAGGED, ODD], ids=["whole", "ragged", "odd"])
@pytest.mark.parametrize("chain", CHAINS)
def test_consumers(chain: str, sizes: dict[str, int]) -> None:
    program = Fused(CHAINS[chain], sizes)
    check(program, compiled(program, f"{TILE} stages=3,2"))


@pytest.mark.parametrize("stages", ["1,1", "2,1", "4,2"])
def test_every_stage_count(stages: str) -> None:
    program = Fused(CHAINS["all"], RAGGED)
    check(program, compiled(program, f"{TILE} stages={stages}"))


def test_sizes_at_run_time() -> None:
    program = Fused(CHAINS["all"], RAGGED, dynamic="mnk")
    kernel = compiled(program, f"{TILE} stages=3,2")
    for sizes in (RAGGED, ODD, WHOLE, {"m": 1, "n": 3, "k": 5}):
        check(program, kernel, sizes)


def test_sizes_at_run_time_with_aligned_rows() -> None:
    program = Fused(CHAINS["all"], RAGGED, dynamic="mnk", promise=16)
    kernel = compiled(program, f"{TILE} stages=3,2")
    for sizes in ({"m": 75, "n": 104, "k": 40}, {"m": 1, "n": 8, "k": 200}, WHOLE):
        check(program, kernel, sizes)


@pytest.mark.parametrize("loops", ["n", "bn", "bm", "b", "bmn", "mn"])
def test_batches(loops: str) -> None:
    addend = Step("%r = arith.addf %x, %p : f32", np.add, (("other", "f32", loops),))
    program = Fused((addend, TO_F16), {"b": 3, **RAGGED})
    check(program, compiled(program, f"{TILE} stages=3,2"))


def test_c_is_stored_where_it_is_a_result_too() -> None:
    program = Fused((BIAS, RELU), RAGGED, keeps_c=True)
    check(program, compiled(program, f"{TILE} stages=3,2"))


def test_results_in_between_are_kept_in_registers() -> None:
    """C of f16 would lose what the next op cancels: it reads f32 accumulators."""
    minus = Step(
        """%w = arith.extf %x : f16 to f32
           %r = arith.subf %w, %p : f32""",
        np.subtract,
        (("minus", "f32", "mn"),),
    )
    program = Fused((minus,), WHOLE, c="f16")
    kernel = compiled(program, f"{TILE} stages=3,2")
    arrays = program.arrays(WHOLE)
    a, b = (array.astype("f8") for array in arrays[:2])
    arrays[2][...] = a @ b
    kernel(*arrays)
    assert np.abs(arrays[-1]).max() < 1e-5


QUANTIZE = Step(
    """%f = arith.sitofp %x : i32 to f32
       %s = arith.mulf %f, %p : f32
       %lo = arith.constant -128.0 : f32
       %hi = arith.constant 127.0 : f32
       %a = arith.maximumf %s, %lo : f32
       %b = arith.minimumf %a, %hi : f32
       %e = math.roundeven %b : f32
       %r = arith.fptosi %e : f32 to i8""",
    lambda x, scale: np.rint(np.clip(np.float32(x) * np.float32(scale), -128, 127)),
    (("scale", "f32", "n"),),
    "i8",
)
DEQUANTIZE = Step(
    """%f = arith.sitofp %x : i32 to f32
       %r = arith.mulf %f, %p : f32""",
    np.multiply,
    (("scale", "f32", "n"),),
)


@pytest.mark.parametrize("step", [QUANTIZE, DEQUANTIZE], ids=["to-i8", "to-f32"])
@pytest.mark.parametrize("sizes", [WHOLE, ODD], ids=["whole", "odd"])
def test_integers(step: Step, sizes: dict[str, int]) -> None:
    program = Fused((step,), sizes, kind="i8", c="i32")
    check(program, compiled(program, "block=64,64,64 warp=32,32 stages=3,2"))
