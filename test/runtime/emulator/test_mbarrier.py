"""mbarrier: counts, phases and states against a model; order, faults, deadlocks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from fixture_kernels import MODES
from kernel_text import launch, module
from racy_kernels import kinds

from alcop_mlir.runtime.emulator import EmulationError, Result

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)


# --- one thread, random operations ------------------------------------------------


@dataclass
class Model:
    """An object as the PTX ISA describes it."""

    expected: int
    pending: int = 0
    tx: int = 0
    phase: int = 0
    states: list[int] = field(default_factory=list)  # phase of each token

    def __post_init__(self) -> None:
        self.pending = self.expected

    def arrive(self, count: int, tx: int = 0) -> int:
        before = self.pending
        self.states.append(self.phase)
        self.tx += tx
        self.pending -= count
        self.settle()
        return before

    def settle(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected


def random_program(rng: np.random.Generator, length: int) -> tuple[str, list[int]]:
    """PTX of one thread that stores what it finds, and what it has to find."""
    at = int(rng.integers(0, 8)) * 8
    model = Model(int(rng.integers(2, 40)))
    body = [f"mbarrier.init.shared.b64 [cells+{at}], {model.expected};"]
    found: list[int] = []

    def note(register: str, value: int) -> None:
        body.append(f"st.global.u32 [%out+{4 * len(found)}], {register};")
        found.append(value)

    for _ in range(length):
        kind = rng.choice(["arrive", "nc", "drop", "test", "parity", "expect", "bytes"])
        if model.pending == 0:
            kind = "bytes"
        most = model.pending
        if kind == "arrive":
            count = int(rng.integers(1, most + 1))
            body.append(f"mbarrier.arrive.shared.b64 %d0, [cells+{at}], {count};")
            model.arrive(count)
        elif kind == "nc" and most > 1:
            count = int(rng.integers(1, most))
            body.append(
                f"mbarrier.arrive.noComplete.shared.b64 %d0, [cells+{at}], "
                f"{count};\nmbarrier.pending_count.b64 %r0, %d0;"
            )
            note("%r0", model.arrive(count))
        elif kind == "drop" and model.expected > 3 and most > 1:
            count = int(rng.integers(1, min(most, 3)))
            drop = "mbarrier.arrive_drop.noComplete.shared.b64"
            body.append(f"{drop} %d0, [cells+{at}], {count};")
            model.expected -= count
            model.arrive(count)
        elif kind == "test" and model.states and model.states[-1] >= model.phase - 1:
            body.append(
                f"mbarrier.test_wait.shared.b64 %p0, [cells+{at}], %d0;\n"
                "selp.u32 %r0, 1, 0, %p0;"
            )
            note("%r0", int(model.states[-1] != model.phase))
        elif kind == "parity":
            bit = int(rng.integers(0, 2))
            body.append(
                "mbarrier.try_wait.parity.shared.b64 %p0, "
                f"[cells+{at}], {bit}, 10;\nselp.u32 %r0, 1, 0, %p0;"
            )
            note("%r0", int(model.phase % 2 != bit))
        elif kind == "expect":
            tx = int(rng.integers(1, 999))
            body.append(
                f"mbarrier.arrive.expect_tx.shared.b64 %d0, [cells+{at}], {tx};"
            )
            model.arrive(1, tx)
        elif kind == "bytes" and model.tx:
            tx = int(rng.integers(1, model.tx + 1))
            body.append(f"mbarrier.complete_tx.shared.b64 [cells+{at}], {tx};")
            model.tx -= tx
            model.settle()
    body.append(f"mbarrier.inval.shared.b64 [cells+{at}];")
    return "\n".join(body), found


DECLARED = """
    .shared .align 8 .b8 cells[64];
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>; .reg .b64 %out;
    ld.param.u64 %out, [p0];
"""


@pytest.mark.parametrize("seed", range(12))
def test_random_operations(seed: int) -> None:
    body, wanted = random_program(np.random.default_rng(seed), 40)
    text = module(DECLARED + body, ["u64"], target="sm_90", version="8.0")
    out = np.zeros(max(len(wanted), 1), np.uint32)
    result = launch(text, None, (1,), (1,), [out])
    assert out[: len(wanted)].tolist() == wanted
    assert result.hazards == ()


@pytest.mark.parametrize("space", ["", ".shared", ".shared::cta"])
def test_generic_addresses(space: str) -> None:
    at = "%d1" if not space else "%r1"
    body = f"""
    mov.u32 %r1, cells; cvta.shared.u64 %d1, cells;
    mbarrier.init{space}.b64 [{at}+8], 1;
    mbarrier.arrive{space}.b64 %d2, [{at}+8];
    mbarrier.test_wait{space}.b64 %p1, [{at}+8], %d2;
    selp.u32 %r2, 7, 8, %p1;
    st.global.u32 [%out], %r2;
    """.replace(
        "cvta.shared.u64 %d1, cells", "mov.u64 %d1, cells; cvta.shared.u64 %d1, %d1"
    )
    out = np.zeros(1, np.uint32)
    launch(module(DECLARED + body, ["u64"]), None, (1,), (1,), [out])
    assert out[0] == 7


# --- rings of warps ------------------------------------------------------------------

SLOTS, STEPS = 2, 5
WAIT = """
{name}:
    mbarrier.{how}.parity.shared.b64 %p0, [{at}], {parity};
    @!%p0 bra {name};
"""


def ring(how: str = "test_wait", without: str = "") -> str:
    """Warp 0 writes numbers to a ring of slots, warps 1 and 2 store their squares."""
    full = "mbarrier.arrive.shared.b64 %d0, [%full];"
    empty = "mbarrier.arrive.shared.b64 %d0, [%empty];"
    wait_full = WAIT.format(name="FULL", how=how, at="%full", parity="%phase")
    wait_empty = WAIT.format(name="EMPTY", how=how, at="%empty", parity="%other")
    if without == "wait_full":
        wait_full = ""
    if without == "wait_empty":
        wait_empty = ""
    if without == "arrive_full":
        full = ""
    if without == "arrive_empty":
        empty = ""
    count = 64 + 32 * (without == "count")
    return f"""
    .shared .align 16 .b8 slots[{SLOTS * 128}];
    .shared .align 8 .b8 bars[{SLOTS * 16}];
    .reg .b32 %i, %lane, %step, %slot, %phase, %other, %full, %empty, %at, %v;
    .reg .b64 %d0, %in, %out; .reg .pred %p<4>;
    ld.param.u64 %in, [p0]; ld.param.u64 %out, [p1];
    mov.u32 %i, %tid.x; and.b32 %lane, %i, 31;
    mad.wide.u32 %in, %lane, 4, %in; mad.wide.u32 %out, %i, 4, %out;
    setp.ne.u32 %p1, %i, 0; @%p1 bra READY;
    mbarrier.init.shared.b64 [bars], 32; mbarrier.init.shared.b64 [bars+16], 32;
    mbarrier.init.shared.b64 [bars+8], {count};
    mbarrier.init.shared.b64 [bars+24], {count};
READY:
    bar.sync 0;
    mov.u32 %step, 0; mov.u32 %slot, 0; mov.u32 %phase, 0;
    setp.lt.u32 %p1, %i, 32;
LOOP:
    mov.u32 %full, bars; mad.lo.u32 %full, %slot, 16, %full; add.u32 %empty, %full, 8;
    mov.u32 %at, slots; mad.lo.u32 %at, %slot, 128, %at; mad.lo.u32 %at, %lane, 4, %at;
    xor.b32 %other, %phase, 1;
    @!%p1 bra CONSUME;
    {wait_empty}
    ld.global.u32 %v, [%in]; add.u32 %v, %v, %step;
    st.shared.u32 [%at], %v;
    {full}
    bra NEXT;
CONSUME:
    {wait_full}
    ld.shared.u32 %v, [%at]; mul.lo.u32 %v, %v, %v;
    st.global.u32 [%out], %v;
    add.u64 %out, %out, 384;
    {empty}
NEXT:
    add.u32 %step, %step, 1; add.u32 %slot, %slot, 1;
    setp.eq.u32 %p2, %slot, {SLOTS};
    @%p2 mov.u32 %slot, 0; @%p2 xor.b32 %phase, %phase, 1;
    setp.lt.u32 %p2, %step, {STEPS}; @%p2 bra LOOP;
    """


def run_ring(
    body: str, visibility: str = "late", schedule: str = "lockstep", blocks: int = 1
) -> tuple[np.ndarray, np.ndarray, Result]:
    given = np.arange(32, dtype=np.uint32) + 3
    out = np.zeros((STEPS, 3, 32), np.uint32)
    text = module(body, ["u64", "u64"], target="sm_90", version="8.0")
    options = {"visibility": visibility, "schedule": schedule}
    result = launch(text, None, (blocks,), (96,), [given, out], **options)
    wanted = (given + np.arange(STEPS)[:, None, None]) ** 2
    return out[:, 1:], np.broadcast_to(wanted, (STEPS, 2, 32)), result


@in_every_mode
@pytest.mark.parametrize("how", ["test_wait", "try_wait"])
def test_ring(how: str, visibility: str, schedule: str) -> None:
    found, wanted, result = run_ring(ring(how), visibility, schedule)
    np.testing.assert_array_equal(found, wanted)
    assert result.hazards == ()
    # A spinning warp is put aside: some 30 instructions for each step of a warp.
    assert result.warp_instructions < 1000


@pytest.mark.parametrize(
    ("left_out", "kind", "schedule"),
    [
        ("wait_full", "read-after-write", "lockstep"),
        ("wait_empty", "write-after-read", "lockstep"),
        ("wait_empty", "write-after-read", "random"),
        ("wait_empty", "write-after-read", "descending"),
    ],
)
def test_ring_without_a_wait(left_out: str, kind: str, schedule: str) -> None:
    """Which access comes first, and so the kind, depends on the schedule."""
    _, _, result = run_ring(ring(without=left_out), schedule=schedule)
    races = {"read-after-write", "write-after-read", "uninitialised-read"}
    assert kinds(result) & races
    if schedule == "lockstep":
        assert kind in kinds(result)
    assert kinds(result) <= races


@pytest.mark.parametrize("left_out", ["arrive_full", "arrive_empty", "count"])
def test_ring_that_hangs(left_out: str) -> None:
    wanted = r"deadlock: .* wait for mbarrier at shared byte \d+, phase \d+: \d+ of "
    with pytest.raises(EmulationError, match=wanted) as error:
        run_ring(ring(without=left_out))
    assert "\n" not in str(error.value)


def test_init_without_a_barrier() -> None:
    _, _, result = run_ring(ring().replace("bar.sync 0;", ""), schedule="ascending")
    assert "read-after-write" in kinds(result)


def test_blocks_of_different_length() -> None:
    """Some blocks leave out the last arrivals: their phases differ from the others'."""
    body = ring().replace(
        f"setp.lt.u32 %p2, %step, {STEPS};",
        f"mov.u32 %v, %ctaid.x; sub.u32 %v, {STEPS}, %v; setp.lt.u32 %p2, %step, %v;",
    )
    found, wanted, result = run_ring(body, blocks=3)
    np.testing.assert_array_equal(found, wanted)
    assert {h.kind for h in result.hazards} <= {"block-conflict"}


# --- copies ----------------------------------------------------------------------

COPY = """
    .shared .align 16 .b8 cells[1024];
    .shared .align 8 .b8 bar[8];
    .reg .b32 %i, %at, %other, %v; .reg .b64 %d0, %in, %out; .reg .pred %p<4>;
    ld.param.u64 %in, [p0]; ld.param.u64 %out, [p1];
    mov.u32 %i, %tid.x;
    mov.u32 %at, cells; mad.lo.u32 %at, %i, 16, %at;
    xor.b32 %other, %at, 512;
    mad.wide.u32 %in, %i, 16, %in; mad.wide.u32 %out, %i, 4, %out;
    setp.ne.u32 %p1, %i, 0; @%p1 bra READY;
    mbarrier.init.shared.b64 [bar], COUNT;
READY:
    bar.sync 0;
    cp.async.cg.shared.global [%at], [%in], 16;
    cp.async.mbarrier.arrive.HOW.b64 [bar];
    ARRIVE
LOOP:
    mbarrier.test_wait.parity.shared.b64 %p0, [bar], 0;
    @!%p0 bra LOOP;
    ld.shared.u32 %v, [%other];
    st.global.u32 [%out], %v;
"""


def run_copy(text: str, visibility: str, schedule: str) -> tuple[bool, Result]:
    given, out = np.arange(256, dtype=np.uint32), np.zeros(64, np.uint32)
    text = module(text, ["u64", "u64"])
    options = {"visibility": visibility, "schedule": schedule}
    result = launch(text, None, (1,), (64,), [given, out], **options)
    return bool((out == (np.arange(64) ^ 32) * 4).all()), result


@in_every_mode
@pytest.mark.parametrize("holds", [False, True])
def test_copies_that_arrive(holds: bool, visibility: str, schedule: str) -> None:
    text = COPY.replace("HOW", "shared" if holds else "noinc.shared")
    text = text.replace("COUNT", "64")
    arrive = "mbarrier.arrive.shared.b64 %d0, [bar];" if holds else ""
    right, result = run_copy(text.replace("ARRIVE", arrive), visibility, schedule)
    assert right
    assert result.hazards == ()
    assert result.notes == ()


@in_every_mode
def test_copies_that_nobody_waits_for(visibility: str, schedule: str) -> None:
    text = COPY.replace("HOW", "noinc.shared").replace("COUNT", "64")
    text = text.replace("ARRIVE", "").replace("@!%p0 bra LOOP;", "")
    _, result = run_copy(text.replace(", 0;\n", ", 1;\n"), visibility, schedule)
    assert kinds(result) & {"read-in-flight", "read-after-write", "uninitialised-read"}


def test_copies_waited_for_in_both_ways() -> None:
    text = COPY.replace("HOW", "noinc.shared").replace("COUNT", "64")
    text = text.replace("ARRIVE", "cp.async.wait_all; ld.shared.u32 %v, [%at];")
    for visibility in ("late", "early"):
        right, result = run_copy(text, visibility, "lockstep")
        assert right
        assert result.hazards == ()


# --- faults ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("mbarrier.arrive.shared.b64 %d0, [cells];",
         "there is no mbarrier at shared byte 0 at block (0, 0, 0) warp 0 lane 0"),
        ("cp.async.mbarrier.arrive.noinc.shared.b64 [cells];",
         "there is no mbarrier at shared byte 0 at block (0, 0, 0) warp 0 lane 0"),
        ("mbarrier.init.shared.b64 [cells], 1;\nmbarrier.inval.shared.b64 [cells];\n"
         "cp.async.mbarrier.arrive.noinc.shared.b64 [cells];",
         "there is no mbarrier at shared byte 0"),
        ("mbarrier.init.shared.b64 [cells], 0;",
         "an mbarrier expects 1 to 1048575 arrivals, not 0"),
        ("mbarrier.init.shared.b64 [cells+8], 2;\n"
         "mbarrier.arrive.shared.b64 %d0, [cells+8], 3;",
         "more arrivals than the phase of the mbarrier expects (mbarrier at shared "
         "byte 8, phase 0: 2 of 2 arrivals pending)"),
        ("mbarrier.init.shared.b64 [cells], 1;\n"
         "mbarrier.arrive.expect_tx.shared.b64 %d0, [cells], 16;\n"
         "mbarrier.arrive.shared.b64 %d0, [cells];",
         "phase 0: 0 of 1 arrivals pending, 16 bytes to come"),
        ("mbarrier.init.shared.b64 [cells], 1;\n"
         "mbarrier.arrive.noComplete.shared.b64 %d0, [cells], 1;",
         "an arrival with .noComplete ends the phase"),
        ("mbarrier.init.shared.b64 [cells+4], 1;", "misaligned 8-byte shared access"),
        ("mbarrier.init.shared.b64 [cells], 1;\nmbarrier.inval.shared.b64 [cells];\n"
         "mbarrier.test_wait.parity.shared.b64 %p0, [cells], 0;",
         "there is no mbarrier at shared byte 0"),
        ("mbarrier.init.shared.b64 [cells], 1;\n"
         "mbarrier.expect_tx.relaxed.cta.shared.b64 [cells], 1048576;",
         "an mbarrier counts at most 1048575 bytes"),
        ("mbarrier.init.shared.b64 [cells], 1;\n"
         "mbarrier.arrive.shared.b64 %d0, [cells];\n"
         "mbarrier.arrive.shared.b64 %d1, [cells];\n"
         "mbarrier.test_wait.shared.b64 %p0, [cells], %d0;",
         "a wait with a state of phase 0 for an mbarrier in phase 2"),
    ],
)  # fmt: skip
def test_faults(body: str, wanted: str) -> None:
    text = module(DECLARED + body, ["u64"], target="sm_90", version="8.0")
    with pytest.raises(EmulationError) as error:
        launch(text, None, (1,), (1,), [np.zeros(1, np.uint32)])
    assert wanted in str(error.value)
    assert "\n" not in str(error.value)


def test_a_plain_write_over_an_mbarrier() -> None:
    body = DECLARED + "mbarrier.init.shared.b64 [cells], 1;\n"
    out = np.zeros(1, np.uint32)
    for gone in ("", "mbarrier.inval.shared.b64 [cells];\n"):
        text = module(body + gone + "st.shared.u32 [cells+4], 1;", ["u64"])
        result = launch(text, None, (1,), (1,), [out])
        assert kinds(result) == (set() if gone else {"mbarrier-overwritten"})


def test_an_object_that_goes_while_warps_wait() -> None:
    body = """
    mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 0; @%p1 bra READY;
    mbarrier.init.shared.b64 [cells], 1;
READY:
    bar.sync 0;
    setp.lt.u32 %p1, %r0, 32; @%p1 bra END;
LOOP:
    mbarrier.try_wait.parity.shared.b64 %p0, [cells], 0;
    @!%p0 bra LOOP;
    ret;
END:
    @%p1 bra.uni GO;
GO:
    setp.ne.u32 %p1, %r0, 0; @%p1 bra OUT;
    mbarrier.inval.shared.b64 [cells];
OUT:
    ret;
    """
    text = module(DECLARED + body, ["u64"], target="sm_90", version="8.0")
    with pytest.raises(EmulationError, match="there is no mbarrier at shared byte 0"):
        launch(text, None, (1,), (64,), [np.zeros(1, np.uint32)], schedule="descending")


# Lane 0 of warp 0 waits for warp 1, while the rest of its warp is at a barrier of both.
WAITS_ALONE = """
    .shared .align 8 .b8 bar[8]; .reg .b32 %i, %n; .reg .pred %p, %q; .reg .b64 %out;
    mov.u32 %i, %tid.x; setp.ne.u32 %p, %i, 0; ld.param.u64 %out, [p0];
    @!%p mbarrier.init.shared.b64 [bar], 1;
    bar.sync 1;
    @%p bra OTHERS;
L:  mbarrier.try_wait.parity.shared.b64 %q, [bar], 0;
    @!%q bra L;
    mov.u32 %n, 20;
SLOW:
    sub.u32 %n, %n, 1; setp.ne.u32 %q, %n, 0; @%q bra SLOW;
OTHERS:
    setp.ne.u32 %p, %i, 32; @%p bra MEET;
    mbarrier.arrive.shared.b64 _, [bar];
MEET:
    bar.sync 0, 64;
    mad.wide.u32 %out, %i, 4, %out; st.global.u32 [%out], %i;
"""


@in_every_mode
def test_lanes_at_a_barrier_wait_for_the_rest(visibility: str, schedule: str) -> None:
    text = module(WAITS_ALONE, ["u64"], target="sm_90", version="8.0")
    out = np.full(64, 99, np.uint32)
    options = {"visibility": visibility, "schedule": schedule}
    result = launch(text, None, (1,), (64,), [out], **options)
    assert result.hazards == ()
    np.testing.assert_array_equal(out, np.arange(64))


def test_lanes_of_a_warp_at_two_barriers() -> None:
    apart = WAITS_ALONE.replace("OTHERS:", "bar.sync 0, 64; OTHERS:", 1)
    text = module(apart, ["u64"], target="sm_90", version="8.0")
    with pytest.raises(EmulationError, match=r"a part of .* waits for the rest of"):
        launch(text, None, (1,), (64,), [np.zeros(64, np.uint32)])
