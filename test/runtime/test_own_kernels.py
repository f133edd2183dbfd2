"""The emulator on kernels of our own compiler: clean as emitted, caught when broken.

The kernels of the bug table and of the mutation run are unrolled into straight lines,
so that `PipelineModel` can say of each change of a commit, a wait or a barrier whether
the program is still right. The emulator must agree: a report where the model finds a
bug, and silence where it finds none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import EmulationError
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import grid_of
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

MODES = [
    (visibility, order)
    for visibility in ("late", "early")
    for order in ("lockstep", "ascending", "descending", "random(5)")
]
in_every_mode = pytest.mark.parametrize(("visibility", "order"), MODES)
STAGES = ["3,2", "3,1", "2,1"]
TILE = 32  # rows and columns of C per block, and k of one step
SLOT = 2 * TILE * TILE  # bytes of an f16 tile in shared memory
STEPS = 8  # along k: every slot is filled, read, and filled again
SHAPE = (2 * TILE, TILE, STEPS * TILE)
LOOP = (TILE, TILE, 32 * TILE)  # too long for LLVM to unroll
SOURCE = """
func.func @matmul(%A: memref<{m}x{k}xf16>, %B: memref<{k}x{n}xf16>,
                  %C: memref<{m}x{n}xf32>) {{
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<{m}x{n}xf32>)
  linalg.matmul ins(%A, %B : memref<{m}x{k}xf16>, memref<{k}x{n}xf16>)
                outs(%C : memref<{m}x{n}xf32>)
  return
}}
"""
Shape = tuple[int, int, int]


@cache
def compiled(shape: Shape, schedule: str) -> tuple[str, Kernel]:
    """The PTX of an f16 matmul, and how to launch it."""
    m, n, k = shape
    source = inputs.read_text(SOURCE.format(m=m, n=n, k=k).encode())
    options = compiler.Options(
        find_target("sm_80"), Schedule.parse(schedule), use_ptxas=False
    )
    bundle = compiler.compile_source(source, options)
    (kernel,) = bundle.functions[0].kernels
    return bundle.code_of(kernel).ptx, kernel


def small(stages: str, shape: Shape = SHAPE) -> tuple[str, Kernel]:
    """A kernel with four warps and the least text."""
    tiles = f"block={TILE},{TILE},{TILE} warp=16,16"
    return compiled(shape, f"{tiles} stages={stages}")


@cache
def operands(shape: Shape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and C = A * B."""
    m, n, k = shape
    generator = np.random.default_rng(m + n + k)
    a = generator.standard_normal((m, k)).astype(np.float16)
    b = generator.standard_normal((k, n)).astype(np.float16)
    return a, b, a.astype(np.float32) @ b.astype(np.float32)


def run(
    ptx: str,
    kernel: Kernel,
    visibility: str = "late",
    order: str = "lockstep",
    shape: Shape = SHAPE,
) -> tuple[set[str], bool]:
    """The kinds of the hazards, and whether the result is right."""
    a, b, wanted = operands(shape)
    c = np.full(wanted.shape, np.nan, np.float32)
    result = emulate(
        ptx,
        kernel.name,
        grid_of(kernel, {}),
        kernel.block,
        [a.copy(), b.copy(), c],
        dynamic_shared=kernel.shared_bytes,
        visibility=visibility,
        schedule=order,
    )
    right = bool((np.abs(c - wanted) <= 1e-3 * np.sqrt(shape[2])).all())
    return {hazard.kind for hazard in result.hazards}, right


def caught(
    ptx: str,
    kernel: Kernel,
    visibility: str = "late",
    order: str = "lockstep",
    shape: Shape = SHAPE,
) -> set[str]:
    """What detects a mutant; empty if nothing does."""
    try:
        kinds, right = run(ptx, kernel, visibility, order, shape)
    except EmulationError:
        return {"fault"}
    return kinds if right else kinds | {"wrong numbers"}


# As emitted ---------------------------------------------------------------------------


@in_every_mode
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("shape", [SHAPE, LOOP], ids=["unrolled", "loop"])
def test_small_kernels_are_clean(
    shape: Shape, stages: str, visibility: str, order: str
) -> None:
    ptx, kernel = small(stages, shape)
    assert ("bra" in ptx) == (shape == LOOP)
    assert run(ptx, kernel, visibility, order, shape) == (set(), True)


@in_every_mode
@pytest.mark.parametrize("stages", STAGES)
def test_the_usual_tile_is_clean(stages: str, visibility: str, order: str) -> None:
    shape = (128, 128, 160)
    ptx, kernel = compiled(shape, f"block=128,128,32 warp=64,64 stages={stages}")
    assert run(ptx, kernel, visibility, order, shape) == (set(), True)


# Statements of the text ---------------------------------------------------------------

COPY, COMMIT, WAIT = r"cp\.async\.cg", r"cp\.async\.commit_group", r"cp\.async\.wait_g"
BARRIER, LOAD, MMA = r"bar\.sync", "ldmatrix", r"mma\.sync"


@dataclass(frozen=True)
class Statement:
    """One instruction, at text[start:stop]."""

    start: int
    stop: int
    text: str

    def replaced(self, ptx: str, new: str) -> str:
        assert new != self.text, "a mutant must differ"
        return ptx[: self.start] + new + ptx[self.stop :]


def statements(ptx: str, pattern: str) -> list[Statement]:
    """All instructions that begin so, in the order of the text."""
    found = re.finditer(rf"(?m)(?<=[\s;]){pattern}[^;]*;", ptx)
    return [Statement(m.start(), m.end(), m[0]) for m in found]


def moved(text: str, amount: int, operand: int = 0) -> str:
    """The nth address of an instruction, `amount` bytes further."""
    old = re.findall(r"\[[^\]]*\]", text)[operand]
    base, _, offset = old[1:-1].partition("+")
    return text.replace(old, f"[{base}+{int(offset or 0) + amount}]", 1)


# The model ----------------------------------------------------------------------------


@dataclass
class PipelineModel:
    """Whether a straight-line pipeline is free of races, and why not.

    All threads run the same statements; those between two barriers in any order
    between warps. Each thread copies its own part of a slot and any warp reads all of
    it. So the program is right if and only if
    - each read of a slot comes after a barrier that comes after a wait that covers
      the last copy to it (only then has every thread waited for its part);
    - each copy to a slot comes after a barrier that comes after all reads of it, and
      after a wait that covers the copy before;
    - no copy is in flight at the end.
    A wait for n covers the copies of all committed groups but the n youngest.
    """

    groups: list[set[int]] = field(default_factory=list)  # slots, of what is in flight
    collected: set[int] = field(default_factory=set)  # not yet committed
    landed: set[int] = field(default_factory=set)  # complete, for the own thread
    ready: set[int] = field(default_factory=set)  # complete, for all
    read: set[int] = field(default_factory=set)  # since the last barrier

    def bug(self, ptx: str) -> str | None:
        """The first rule that is broken; None for a right program."""
        any_of = "|".join((COPY, COMMIT, WAIT, BARRIER, LOAD))
        for statement in statements(ptx, f"(?:{any_of})"):
            why = self.step(statement.text)
            if why:
                return why
        flying = set.union(self.collected, *self.groups)
        return f"copies to {flying} in flight at the end" if flying else None

    def step(self, text: str) -> str | None:
        if text.startswith("bar"):
            self.ready |= self.landed
            self.landed, self.read = set(), set()
        elif text.startswith("ldmatrix"):
            slot = slot_of(text)
            self.read.add(slot)
            if slot not in self.ready:
                return f"slot {slot} read too early"
        elif "commit" in text:
            self.groups.append(self.collected)
            self.collected = set()
        elif "wait" in text:
            count = int(re.findall(r"\d+", text)[-1])
            while len(self.groups) > count:
                self.landed |= self.groups.pop(0)
        else:
            return self.copy(slot_of(text))
        return None

    def copy(self, slot: int) -> str | None:
        if slot in self.read:
            return f"slot {slot} overwritten too early"
        if slot in set.union(self.collected, *self.groups):
            return f"slot {slot} filled twice at a time"
        self.collected.add(slot)
        self.landed.discard(slot)
        self.ready.discard(slot)
        return None


def slot_of(text: str) -> int:
    """The slots follow each other: those of A, then those of B.

    LLVM keeps what depends on the thread, less than a slot, in the register.
    """
    address = re.findall(r"\[%\w+(?:\+(\d+))?\]", text)[0]
    return int(address or 0) // SLOT


@pytest.mark.parametrize("stages", STAGES)
def test_the_model_knows_the_kernel(stages: str) -> None:
    """It sees all slots, and nothing wrong."""
    ptx, _ = small(stages)
    copies = [slot_of(s.text) for s in statements(ptx, COPY)]
    assert sorted(set(copies)) == list(range(2 * int(stages[0])))
    assert len(copies) == 2 * STEPS
    assert len(statements(ptx, LOAD)) == 4 * STEPS
    assert len(statements(ptx, MMA)) == 4 * STEPS
    assert PipelineModel().bug(ptx) is None


# The bug table ------------------------------------------------------------------------

EARLY_READ = {"read-in-flight", "read-after-write"}
RACE = {"read-after-write", "write-after-read", "write-after-write"}
# A warp that runs ahead of the others reads what they have not even begun to copy.
AHEAD = {*RACE, "read-in-flight", "uninitialised-read"}
Bug = Callable[[str], str]


def nth(pattern: str, number: int, change: Callable[[str], str]) -> Bug:
    def mutant(ptx: str) -> str:
        statement = statements(ptx, pattern)[number]
        return statement.replaced(ptx, change(statement.text))

    return mutant


def deleted(text: str) -> str:
    return ""


def one_more(text: str) -> str:
    return re.sub(r"\d+;", lambda m: f"{int(m[0][:-1]) + 1};", text)


def no_wait_at_all(ptx: str) -> str:
    return re.sub(rf"{WAIT}[^;]*;", "", ptx)


def no_barrier_at_all(ptx: str) -> str:
    return re.sub(rf"{BARRIER}[^;]*;", "", ptx)


# name: the change, the kinds that must be among the reports of every mode (one of them)
# and those that may be. The numbers are of a step in the middle.
BUGS: dict[str, tuple[Bug, set[str], set[str]]] = {
    "missing wait": (nth(WAIT, 2, deleted), {"read-in-flight"}, EARLY_READ),
    "no wait at all": (
        no_wait_at_all,
        {"read-in-flight"},
        {*EARLY_READ, "write-in-flight", "write-after-read", "copy-in-flight-at-exit"},
    ),
    "wait count + 1": (nth(WAIT, 2, one_more), {"read-in-flight"}, EARLY_READ),
    "no barrier at all": (no_barrier_at_all, RACE, AHEAD),
    "copy to the next slot": (
        nth(COPY, 4, lambda text: moved(text, SLOT)),
        {"write-in-flight", "write-after-read", "read-in-flight"},
        {"write-in-flight", *AHEAD},
    ),
    "read of the next slot": (
        nth(LOAD, 0, lambda text: moved(text, SLOT)),
        {"read-in-flight"},
        AHEAD,
    ),
    "missing commit": (nth(COMMIT, 1, deleted), {"read-in-flight"}, EARLY_READ),
}


@in_every_mode
@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("stages", STAGES)
def test_bug_table(stages: str, bug: str, visibility: str, order: str) -> None:
    change, wanted, allowed = BUGS[bug]
    ptx, kernel = small(stages)
    kinds, _ = run(change(ptx), kernel, visibility, order)
    assert kinds & wanted
    assert kinds <= allowed


@in_every_mode
@pytest.mark.parametrize("number", range(STEPS))
@pytest.mark.parametrize("stages", STAGES)
def test_each_missing_barrier(
    stages: str, number: int, visibility: str, order: str
) -> None:
    """A race in every mode, but numbers that come out right if warps are in step."""
    ptx, kernel = small(stages)
    mutant = nth(BARRIER, number, deleted)(ptx)
    kinds, right = run(mutant, kernel, visibility, order)
    assert kinds
    assert kinds <= AHEAD
    if order == "lockstep":
        assert right


@in_every_mode
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("amount", [1 << 20, -(1 << 20)])
def test_copy_out_of_bounds(
    stages: str, amount: int, visibility: str, order: str
) -> None:
    ptx, kernel = small(stages)
    mutant = nth(COPY, 0, lambda text: moved(text, amount, operand=1))(ptx)
    with pytest.raises(EmulationError, match=r"out-of-bounds 16-byte global .*param_"):
        run(mutant, kernel, visibility, order)


@in_every_mode
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize(("pattern", "operand"), [(COPY, 0), (COPY, 1), (LOAD, 0)])
def test_misaligned_access(
    stages: str, pattern: str, operand: int, visibility: str, order: str
) -> None:
    ptx, kernel = small(stages)
    mutant = nth(pattern, 1, lambda text: moved(text, 8, operand))(ptx)
    with pytest.raises(EmulationError, match="misaligned 16-byte"):
        run(mutant, kernel, visibility, order)


@pytest.mark.parametrize("change", [deleted, one_more])
@pytest.mark.parametrize("stages", STAGES)
def test_synchronisation_in_a_loop(stages: str, change: Callable[[str], str]) -> None:
    """Each commit, wait and barrier of the loop is needed."""
    ptx, kernel = small(stages, LOOP)
    label = re.search(r"(?m)^(\$L\S+):(?=[\s\S]*bra(?:\.uni)? \s*\1;)", ptx)
    assert label is not None
    end = ptx.index(f"{label[1]};")
    tried = 0
    for pattern in (COMMIT, WAIT, BARRIER) if change is deleted else (WAIT,):
        for statement in statements(ptx, pattern):
            if label.start() < statement.start < end:
                mutant = statement.replaced(ptx, change(statement.text))
                found = caught(mutant, kernel, shape=LOOP)
                assert found - {"wrong numbers"}, statement.text
                tried += 1
    assert tried


# Mutants ------------------------------------------------------------------------------


def synchronisation_mutants(ptx: str) -> Iterator[tuple[str, str]]:
    """A description and the text of each."""
    for pattern in (COMMIT, WAIT, BARRIER):
        for number, statement in enumerate(statements(ptx, pattern)):
            text, name = statement.text, f"{pattern} {number}"
            yield f"{name} deleted", statement.replaced(ptx, "")
            yield f"{name} twice", statement.replaced(ptx, f"{text} {text}")
            if pattern == WAIT:
                yield f"{name} + 1", statement.replaced(ptx, one_more(text))
                if not text.endswith("\t0;"):
                    none = re.sub(r"\d+;", "0;", text)
                    yield f"{name} for all", statement.replaced(ptx, none)
    for number, (wait, barrier) in enumerate(
        zip(statements(ptx, WAIT), statements(ptx, BARRIER), strict=True)
    ):
        swapped = barrier.text + ptx[wait.stop : barrier.start] + wait.text
        mutant = ptx[: wait.start] + swapped + ptx[barrier.stop :]
        yield f"barrier before wait {number}", mutant


@pytest.mark.parametrize(
    ("visibility", "order"), [("late", "lockstep"), ("early", "descending")]
)
@pytest.mark.parametrize("stages", STAGES)
def test_synchronisation_mutants(stages: str, visibility: str, order: str) -> None:
    """Reported exactly where the model finds a bug; right numbers prove nothing."""
    ptx, kernel = small(stages)
    wrong, bugs = [], 0
    for name, mutant in synchronisation_mutants(ptx):
        found = caught(mutant, kernel, visibility, order)
        why = PipelineModel().bug(mutant)
        bugs += why is not None
        if bool(found - {"wrong numbers"}) != (why is not None):
            wrong.append(f"{name}: model: {why}; emulator: {found or 'clean'}")
    assert not wrong, "\n".join(wrong)
    assert bugs > 3 * STEPS


def operation_mutants(ptx: str) -> Iterator[tuple[str, str]]:
    """Copies, loads and `mma.sync` left out or changed."""
    for number, copy in enumerate(statements(ptx, COPY)):
        name, text = f"copy {number}", copy.text
        yield f"{name} deleted", copy.replaced(ptx, "")
        yield f"{name} elsewhere", copy.replaced(ptx, moved(text, 64))
        yield f"{name} from elsewhere", copy.replaced(ptx, moved(text, 16, 1))
        yield f"{name} of a half", copy.replaced(ptx, text.replace("16;", "16, 8;"))
    for number, load in enumerate(statements(ptx, LOAD)):
        name, text = f"load {number}", load.text
        yield f"{name} deleted", load.replaced(ptx, "")
        yield f"{name} from elsewhere", load.replaced(ptx, moved(text, 512))
        turned = text.replace(".x4.shared", ".x4.trans.shared")
        if ".trans" in text:
            turned = text.replace(".trans", "")
        yield f"{name} transposed", load.replaced(ptx, turned)
        swapped = re.sub(r"\{(%r\d+), (%r\d+),", r"{\2, \1,", text)
        yield f"{name} swapped", load.replaced(ptx, swapped)
    for number, mma in enumerate(statements(ptx, MMA)):
        name, text = f"mma {number}", mma.text
        yield f"{name} deleted", mma.replaced(ptx, "")
        yield f"{name} swapped", mma.replaced(ptx, swapped_operands(text))


def swapped_operands(text: str) -> str:
    """The two registers of B, the only list of two."""
    return re.sub(r"\{\s*(%r\d+),\s*(%r\d+)\s*\}", r"{\2, \1}", text)


@pytest.mark.parametrize("stages", STAGES)
def test_operation_mutants(stages: str) -> None:
    """Caught by a report, a fault or the numbers: none does what the original does."""
    ptx, kernel = small(stages)
    mutants = dict(operation_mutants(ptx))
    assert len(mutants) == (2 * 4 + 4 * 4 + 4 * 2) * STEPS
    survivors = [name for name in mutants if not caught(mutants[name], kernel)]
    assert not survivors
