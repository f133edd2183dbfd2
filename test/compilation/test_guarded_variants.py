"""End to end with variants of a contraction whose sizes are known at run time only.

Each variant gives bit for bit what the kernel of its schedule gives that was compiled
for the sizes, and runs where its guard holds: sizes are on both sides of each border.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

# For few rows, split along K, rows of 4 bytes, and for all sizes.
SCHEDULES = (
    "block=16,32,32 warp=16,32 stages=3,2",
    "block=32,32,32 warp=16,32 stages=3,1 split_k=2",
    "block=32,32,32 warp=32,32 stages=2,1 raster=2",
    "block=32,16,32 warp=16,16 stages=2,2",
)
GUARDS = (
    'row_bytes = 16, limits = [{loops = "m", most = 16}],',
    'row_bytes = 16, limits = [{loops = "mn", most = 2048}],',
    "row_bytes = 4,",
    "",
)
BIAS_AND_RELU = """
  linalg.generic {indexing_maps = [#here, affine_map<(d0, d1) -> (d1)>, #here],
                  iterator_types = ["parallel", "parallel"]}
    ins(%C, %V : {C}, {V}) outs(%D : {D}) {
  ^bb0(%x: f32, %y: f32, %z: f16):
    %0 = arith.addf %x, %y : f32
    %1 = arith.maximumf %0, %zero : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  }"""


@dataclass(frozen=True)
class Form:
    """A function of A, B and C, and with an epilogue of V and D instead of C.

    lhs, rhs: the loops of A and B; those of C are "mn", or "bmn" with a batch
    gaps:     whether rows have distances of their own, and arrays any offset
    numbers:  of its variants, in `SCHEDULES`
    """

    kind: str = "f16"
    out: str = "f32"
    lhs: str = "mk"
    rhs: str = "kn"
    has_epilogue: bool = False
    gaps: bool = False
    numbers: tuple[int, ...] = (0, 1, 2, 3)

    @property
    def arrays(self) -> dict[str, tuple[str, str]]:
        """Loops and elements of each array, by name."""
        batch = "b" if "b" in self.lhs else ""
        found = {
            "A": (self.lhs, self.kind),
            "B": (self.rhs, self.kind),
            "C": (f"{batch}mn", self.out),
        }
        if self.has_epilogue:
            found |= {"V": ("n", "f32"), "D": ("mn", "f16")}
        return found

    @property
    def taken(self) -> list[tuple[str, str]]:
        """Those that a call is given: with an epilogue all but C."""
        arrays = self.arrays.items()
        return [one for name, one in arrays if name != "C" or not self.has_epilogue]

    def text(self, decided: str, sizes: Mapping[str, int] | None = None) -> str:
        """The function; `decided` is an attribute of the contraction."""
        types = {name: self._type(name, sizes) for name in self.arrays}
        taken = [name for name in types if name != "C" or not self.has_epilogue]
        arguments = ", ".join(f"%{name}: {types[name]}" for name in taken)
        allocated = ""
        if self.has_epilogue:
            allocated = f"%C = memref.alloc(%m, %n) : {types['C']}"
            if sizes:
                allocated = allocated.replace("%m, %n", "")
        after = BIAS_AND_RELU if self.has_epilogue else ""
        for name in types:
            after = after.replace(f"{{{name}}}", types[name])
        loops = [letters for letters, _ in self.arrays.values()][:3]
        every = [loop for loop in "bmnk" if any(loop in one for one in loops)]
        maps = ", ".join(
            f"affine_map<({', '.join(every)}) -> ({', '.join(one)})>" for one in loops
        )
        kinds = ", ".join(
            '"reduction"' if loop == "k" else '"parallel"' for loop in every
        )
        return f"""
          #here = affine_map<(d0, d1) -> (d0, d1)>
          func.func @f({arguments}) {{
            %zero = arith.constant {"0" if self.out == "i32" else "0.0"} : {self.out}
            %c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %c2 = arith.constant 2 : index
            %m = memref.dim %A, %c{self.lhs.index("m")} : {types["A"]}
            %n = memref.dim %B, %c{self.rhs.index("n")} : {types["B"]}
            {allocated}
            linalg.fill ins(%zero : {self.out}) outs(%C : {types["C"]})
            linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}],
                             {decided}}}
              ins(%A, %B : {types["A"]}, {types["B"]}) outs(%C : {types["C"]}) {{
            ^bb0(%a: {self.kind}, %b: {self.kind}, %c: {self.out}):
              {self._body()}
              linalg.yield %s : {self.out}
            }}
            {after}
            return
          }}"""

    def _body(self) -> str:
        letter = "i" if self.out == "i32" else "f"
        wide = "" if self.kind == "f32" else "w"
        extended = [
            f"%{one}w = arith.ext{'si' if letter == 'i' else 'f'} %{one} "
            f": {self.kind} to {self.out}"
            for one in "ab"
            if wide
        ]
        product = f"%p = arith.mul{letter} %a{wide}, %b{wide} : {self.out}"
        return "\n".join(
            [*extended, product, f"%s = arith.add{letter} %c, %p : {self.out}"]
        )

    def _type(self, name: str, sizes: Mapping[str, int] | None) -> str:
        loops, kind = self.arrays[name]
        extents = [str(sizes[loop]) if sizes else "?" for loop in loops]
        layout = ""
        if self.gaps and name in "ABC":
            layout = ", strided<[?, 1], offset: ?>"
            if sizes:
                layout = f", strided<[{sizes[loops[-1]] + sizes['gap']}, 1]>"
        return f"memref<{'x'.join((*extents, kind))}{layout}>"

    def data(self, sizes: Mapping[str, int], exact: bool) -> list[np.ndarray]:
        """Arrays for a call; small whole numbers where that is `exact`."""
        random = np.random.default_rng(sum(sizes.values()))
        found = []
        for name, (loops, kind) in self.arrays.items():
            shape = [sizes[loop] for loop in loops]
            if self.gaps and name in "ABC":
                shape[-1] += sizes["gap"]
            array = dtypes.random(random, tuple(shape), kind)
            if exact:
                values = random.integers(-4, 5, shape)
                array = dtypes.encode(values.astype(np.float64), kind)
            if name != "C" or not self.has_epilogue:
                found.append(array[..., : sizes[loops[-1]]])
        return found

    def expected(self, arrays: list[np.ndarray]) -> np.ndarray:
        """The last array, of small whole numbers."""
        a, b, *others = (
            dtypes.decode(array, kind)
            for array, (_, kind) in zip(arrays, self.taken, strict=True)
        )
        c = np.einsum(f"{self.lhs},{self.rhs}->{self.arrays['C'][0]}", a, b)
        return np.maximum(c + others[0], 0) if self.has_epilogue else c


@dataclass(frozen=True)
class Case:
    """A form, and what to run: sizes, with the number of the variant that runs.

    same:    compared with the kernel for these sizes alone, on random numbers
    borders: of guards, on both sides, on small whole numbers, which are exact
    """

    form: Form
    same: tuple[tuple[dict[str, int], int], ...]
    borders: tuple[tuple[dict[str, int], int], ...] = ()


def sizes(m: int, n: int, k: int, b: int = 3, gap: int = 16) -> dict[str, int]:
    return {"m": m, "n": n, "k": k, "b": b, "gap": gap}


# Each with a ragged tile and a ragged K step.
SAME = (
    (sizes(16, 48, 80), 0),
    (sizes(40, 48, 96), 1),
    (sizes(72, 44, 52, gap=4), 2),
    (sizes(40, 35, 37, gap=3), 3),
)
CASES = {
    "plain": Case(
        Form(),
        SAME,
        (
            (sizes(16, 8, 16), 0),
            (sizes(17, 8, 16), 1),
            (sizes(17, 8, 24), 2),  # K has no two parts of whole 16 bytes
            (sizes(16, 8, 20), 2),
            (sizes(16, 12, 16), 2),
            (sizes(64, 32, 16), 1),  # M * N is 2048
            (sizes(65, 32, 16), 2),
            (sizes(65, 34, 18), 2),
            (sizes(65, 33, 18), 3),
            (sizes(5, 34, 17), 3),
            (sizes(1, 1, 1), 3),
            (sizes(16, 8, 0), 0),
            (sizes(17, 8, 0), 2),  # nothing to split
            (sizes(17, 9, 0), 3),
            (sizes(0, 8, 16), 0),
            (sizes(17, 0, 16), 1),
        ),
    ),
    "fused": Case(
        Form(rhs="nk", has_epilogue=True),
        SAME[:2],
        (
            (sizes(17, 8, 16), 1),
            (sizes(17, 4, 16), 2),  # D is of f16
            (sizes(17, 3, 16), 3),
            (sizes(16, 8, 0), 0),
            (sizes(17, 9, 0), 3),
        ),
    ),
    "batch": Case(
        Form(lhs="bmk", rhs="bkn", numbers=(0, 2, 3)),
        (SAME[0], SAME[2]),
        (
            (sizes(16, 8, 16), 0),
            (sizes(17, 8, 16), 2),
            (sizes(16, 8, 16, b=0), 0),
            (sizes(16, 9, 16, b=1), 3),
        ),
    ),
    "gaps": Case(
        Form(gaps=True),
        SAME[:2],
        (
            (sizes(16, 8, 16, gap=8), 0),
            (sizes(16, 8, 16, gap=4), 2),
            (sizes(17, 8, 16, gap=2), 2),
            (sizes(16, 8, 16, gap=1), 3),
            (sizes(1, 8, 16, gap=1), 3),
        ),
    ),
    "bf16": Case(Form("bf16", lhs="km", numbers=(1, 3)), (SAME[1], SAME[3])),
    "tf32": Case(Form("f32", rhs="nk", numbers=(1, 2, 3)), (SAME[1], SAME[3])),
    "s8": Case(Form("i8", "i32", rhs="nk", numbers=(0, 3)), (SAME[0], SAME[3])),
}


def compiled(text: str) -> Program:
    options = compiler.Options(use_ptxas=False, allow_tf32=True)
    return Program(
        compiler.compile_source(inputs.read(text), options), device="emulator"
    )


def written(number: int) -> str:
    """The schedule as MLIR has it."""
    items = Schedule.parse(SCHEDULES[number]).to_dict().items()
    return "{" + ", ".join(f"{name} = {value}" for name, value in items) + "}"


def with_variants(form: Form) -> Program:
    ways = ", ".join(f"{{{GUARDS[n]} schedule = {written(n)}}}" for n in form.numbers)
    return compiled(form.text(f"alcop.variants = [{ways}]"))


@pytest.mark.parametrize("name", CASES)
def test_variants(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On the emulator, which finds no hazard; remarks ask for no promise."""
    form, case = CASES[name].form, CASES[name]
    program = with_variants(form)
    remarks = capsys.readouterr().err.splitlines()
    assert len(set(remarks)) == len(remarks)
    if name == "plain":
        other = "rows of a multiple of 16 bytes are for another variant"
        assert all(one.endswith(other) for one in remarks if "rule 1" in one), remarks

    def ran() -> int:
        (number,) = program.last_variants
        return form.numbers[number]

    for at, number in case.same:
        arrays, same = (form.data(at, exact=False) for _ in range(2))
        program(*arrays)
        # Rows of f32 are of 4 bytes anyhow, so that no other variant is left.
        assert ran() == (2 if name == "tf32" and number == 3 else number)
        schedule = f"alcop.schedule = #alcop.schedule<{written(ran())}>"
        compiled(form.text(schedule, at))(*same)
        np.testing.assert_array_equal(bits(arrays[-1]), bits(same[-1]))
    if form.gaps:
        refuse_bad_input(program, form)
    for at, number in case.borders:
        arrays = form.data(at, exact=True)
        expected = form.expected(arrays)
        program(*arrays)
        assert ran() == number, at
        found = dtypes.decode(arrays[-1], form.taken[-1][1])
        np.testing.assert_array_equal(found, expected)


def test_a_variant_for_long_k() -> None:
    """From a size on, and up to another; on both sides of both."""
    limits = '[{loops = "k", least = 16, most = 40}, {loops = "mk", least = 100}]'
    ways = (
        f"{{limits = {limits}, schedule = {written(2)}}}, {{schedule = {written(3)}}}"
    )
    form = Form()
    program = compiled(form.text(f"alcop.variants = [{ways}]"))
    for at, ran in (
        (sizes(8, 8, 15), 1),
        (sizes(8, 8, 16), 0),
        (sizes(8, 8, 40), 0),
        (sizes(8, 8, 41), 1),
        (sizes(5, 8, 20), 0),
        (sizes(3, 8, 33), 1),
        (sizes(8, 8, 0), 1),
    ):
        arrays = form.data(at, exact=True)
        expected = form.expected(arrays)
        program(*arrays)
        assert program.last_variants == (ran,), at
        np.testing.assert_array_equal(arrays[-1], expected)


def refuse_bad_input(program: Program, form: Form) -> None:
    """One line, before any kernel runs."""
    a, b, c = form.data(sizes(16, 8, 16), exact=True)
    other, _, _ = form.data(sizes(16, 8, 24), exact=True)
    for given, message in (
        ((other, b, c), r"shape 16x8, expected 24xN: K is 24"),
        ((a[::-1], b, c), r"strides of -64x2 bytes, expected .*, none negative"),
        ((a, b[:, ::-1], c), r"strides of 48x-2 bytes, expected arg1_stride_0x2"),
        ((a, b, c[:, ::2]), r"shape 16x4, expected 16x8: M is 16, N is 8"),
    ):
        with pytest.raises(LaunchError, match=message) as refusal:
            program(*given)
        assert "\n" not in str(refusal.value)


def placed(arrays: Sequence[np.ndarray], offsets: Sequence[int]) -> list[np.ndarray]:
    """Copies that begin so many elements behind a multiple of 16 bytes."""
    found = []
    for array, offset in zip(arrays, offsets, strict=True):
        strides = [max(0, stride) for stride in array.strides]
        reach = sum(n * step for n, step in zip(array.shape, strides, strict=True))
        memory = np.zeros(reach + offset * array.itemsize + 32, np.uint8)
        begin = -memory.ctypes.data % 16 + offset * array.itemsize
        view = np.ndarray(array.shape, array.dtype, memory, begin, array.strides)
        view[...] = array
        found.append(view)
    return found


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8)
