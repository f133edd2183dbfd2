"""Random kernels with rings of slots, as PTX text, some right and some wrong.

A kernel has one or two streams of tiles, each with a ring of its own, and one or two
loops, maybe inside of another one. How slots are counted, copies guarded, groups
committed and waited for, in which order, with which barriers, is drawn; about half of
the kernels have something that may be wrong.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

THREADS = 64
MOST_TILES = 16  # so many may be copied
READS = {"own": 0, "pair": 1, "warps": 32, "both": 33}  # whose bytes: XOR of a thread
PIECES = ("wait", "barrier", "read", "fetch")
ORDERS = (
    ("wait", "barrier", "read", "fetch"),
    ("wait", "barrier", "fetch", "read"),
    ("fetch", "wait", "barrier", "read", "barrier"),
    ("wait", "barrier", "read", "barrier", "fetch"),
)


@dataclass(frozen=True)
class Stream:
    """Tiles of THREADS * width bytes, copied `distance` turns before they are read.

    ring:  how slots are counted: "wrap", "mask", "rotate" or "rem"
    read:  whose bytes a thread reads
    shift: bytes that copies of the loop go beside their slot
    """

    slots: int
    distance: int
    width: int
    ring: str
    read: str
    shift: int = 0

    @property
    def tile(self) -> int:
        return THREADS * self.width


@dataclass(frozen=True)
class Loop:
    """A loop over tiles, with what comes in front and behind.

    order:   of the pieces of a turn
    waits:   groups that may be in flight; None for wait_all
    guard:   how copies past the end are left out: "branch", "predicate", "fill"; or
             "none": they are there
    commits: "turn", "stream", or "guarded": under the guard of a branch
    drain:   behind the loop: "all" with a barrier, "wait" without, "none"
    barrier: under which condition: "always", "odd" threads' numbers, "uniform" ones
    scratch: each turn exchanges a number through shared memory, in so many barriers
    """

    order: tuple[str, ...]
    waits: int | None
    guard: str
    commits: str
    drain: str
    barrier: str = "always"
    scratch: int | None = None


@dataclass
class Kernel:
    """All that is drawn by one seed."""

    streams: tuple[Stream, ...]
    loops: tuple[Loop, ...]
    is_nested: bool
    lines: list[str] = field(default_factory=list)
    labels: int = 0

    def text(self) -> str:
        """The PTX: in, out, the turns of each loop, and of the loop around them."""
        self.lines, self.labels = [], 0
        self._begin()
        outer = self._label()
        if self.is_nested:
            self._add("mov.b64 %m, 0;", "setp.lt.s64 %pm, %n2, 1;", "@%pm bra END;")
            self._add(f"{outer}:")
        for number, loop in enumerate(self.loops):
            self._loop(number, loop)
        if self.is_nested:
            self._add("add.s64 %m, %m, 1;", "setp.lt.s64 %pm, %m, %n2;")
            self._add(f"@%pm bra {outer};")
        self._add("END:", "add.s64 %g, %out, %t4;", "st.global.b32 [%g], %acc;", "ret;")
        return "\n".join([*self._head(), *(f"  {x}" for x in self.lines), "}", ""])

    def _head(self) -> list[str]:
        names = [f"%{n}{s}" for s in range(2) for n in ("rs", "ws", "to", "of", "src")]
        names += [f"%x{s}{i}" for s in range(2) for i in range(4)]
        wide = (
            "%in, %out, %n0, %n1, %n2, %m, %t, %f, %a, %b, %c, %t4, %sc, %sx, %mine, %g"
        )
        tiles = [
            f".shared .align 16 .b8 tiles{s}[{one.slots * one.tile}];"
            for s, one in enumerate(self.streams)
        ]
        return [
            ".version 7.8",
            ".target sm_80",
            ".address_size 64",
            ".visible .entry random(.param .u64 in, .param .u64 out, .param .u64 n0, "
            ".param .u64 n1, .param .u64 n2)",
            f".reqntid {THREADS}, 1, 1",
            "{",
            "  .reg .pred %p, %pf, %pm, %po, %pw;",
            "  .reg .b32 %tid, %acc, %v, %size, %odd;",
            f"  .reg .b64 {wide}, {', '.join(names)};",
            *(f"  {one}" for one in tiles),
            f"  .shared .align 16 .b8 scratch[{THREADS * 4}];",
        ]

    def _begin(self) -> None:
        for name in ("in", "out", "n0", "n1", "n2"):
            self._add(f"ld.param.u64 %{name}, [{name}];")
        self._add("mov.u32 %tid, %tid.x;", "mov.b32 %acc, 0;")
        self._add("mul.wide.u32 %t4, %tid, 4;", "and.b32 %odd, %tid, 1;")
        self._add("setp.eq.s32 %po, %odd, 1;")
        self._add("mov.u64 %a, scratch;", "add.s64 %sc, %a, %t4;")
        self._add("xor.b64 %b, %t4, 128;", "add.s64 %sx, %a, %b;")
        for s, one in enumerate(self.streams):
            self._add(
                f"mul.wide.u32 %mine, %tid, {one.width};", f"mov.u64 %a, tiles{s};"
            )
            self._add(f"add.s64 %to{s}, %a, %mine;")
            self._add(f"xor.b64 %b, %mine, {READS[one.read] * one.width};")
            self._add(f"add.s64 %of{s}, %a, %b;", f"add.s64 %src{s}, %in, %mine;")

    def _loop(self, number: int, loop: Loop) -> None:
        n, head, done = f"%n{number}", self._label(), self._label()
        most = max(one.distance for one in self.streams)
        for turn in range(most):
            for s, one in enumerate(self.streams):
                if turn < most - one.distance:  # of less distance: it begins later
                    continue
                self._prologue(s, turn - most + one.distance, n)
                if loop.commits == "stream":
                    self._add("cp.async.commit_group;")
            if loop.commits != "stream":
                self._add("cp.async.commit_group;")
        self._add("mov.b64 %t, 0;")
        for s, one in enumerate(self.streams):
            self._add(
                f"mov.b64 %rs{s}, 0;", f"mov.b64 %ws{s}, {one.distance % one.slots};"
            )
            for i in range(one.slots):
                self._add(f"mov.b64 %x{s}{i}, {i};")
        self._add(f"setp.lt.s64 %p, {n}, 1;", f"@%p bra {done};", f"{head}:")
        for piece in loop.order:
            self._piece(piece, loop, n)
        self._exchange(loop)
        self._add("add.s64 %t, %t, 1;")
        for s, one in enumerate(self.streams):
            self._next(s, one)
        self._add(f"setp.lt.s64 %p, %t, {n};", f"@%p bra {head};", f"{done}:")
        if loop.drain != "none":
            self._add("cp.async.wait_all;")
        if loop.drain == "all":
            self._add("bar.sync 0;")

    def _prologue(self, s: int, slot: int, n: str) -> None:
        skip, one = self._label(), self.streams[s]
        self._add(f"mov.b64 %f, {slot};")
        self._add(f"setp.ge.s64 %pf, %f, {n};", f"@%pf bra {skip};")
        place = slot % one.slots * one.tile
        self._add(
            f"cp.async.ca.shared.global [%to{s}+{place}], "
            f"[%src{s}+{slot * one.tile}], {one.width};"
        )
        self._add(f"{skip}:")

    def _piece(self, piece: str, loop: Loop, n: str) -> None:
        if piece == "wait":
            count = loop.waits
            what = "wait_all" if count is None else f"wait_group {count}"
            self._add(f"cp.async.{what};")
        elif piece == "barrier":
            self._barrier(loop)
        elif piece == "read":
            for s, one in enumerate(self.streams):
                self._add(f"mul.lo.s64 %a, %rs{s}, {one.tile};")
                self._add(f"add.s64 %a, %a, %of{s};", "ld.shared.b32 %v, [%a];")
                self._add("mad.lo.s32 %acc, %acc, 3, %v;")
        else:
            self._fetch(loop, n)

    def _barrier(self, loop: Loop) -> None:
        skip = self._label()
        if loop.barrier == "odd":
            self._add("@%po bar.sync 0;")
            return
        if loop.barrier == "uniform":
            self._add("setp.gt.s64 %pw, %n2, 1;", f"@%pw bra {skip};")
        self._add("bar.sync 0;")
        if loop.barrier == "uniform":
            self._add(f"{skip}:")

    def _fetch(self, loop: Loop, n: str) -> None:
        for s, one in enumerate(self.streams):
            skip = self._label()
            self._add(f"add.s64 %f, %t, {one.distance};", f"setp.lt.s64 %pf, %f, {n};")
            self._add(f"mul.lo.s64 %a, %ws{s}, {one.tile};")
            self._add(f"add.s64 %a, %a, %to{s};", f"mul.lo.s64 %g, %f, {one.tile};")
            self._add(f"add.s64 %g, %g, %src{s};")
            guard, size = "@%pf " if loop.guard == "predicate" else "", ""
            if loop.guard == "branch":
                self._add(f"@!%pf bra {skip};")
            elif loop.guard == "fill":
                self._add(f"selp.b32 %size, {one.width}, 0, %pf;")
                size = ", %size"
            place = f"[%a+{one.shift}], [%g], {one.width}{size}"
            self._add(f"{guard}cp.async.ca.shared.global {place};")
            is_guarded = loop.guard == "branch"
            if loop.commits == "guarded":
                self._add("cp.async.commit_group;")
            if is_guarded:
                self._add(f"{skip}:")
            if loop.commits == "stream":
                self._add("cp.async.commit_group;")
        if loop.commits == "turn":
            self._add("cp.async.commit_group;")

    def _exchange(self, loop: Loop) -> None:
        if loop.scratch is None:
            return
        self._add("st.shared.b32 [%sc], %acc;")
        if loop.scratch > 0:
            self._add("bar.sync 0;")
        self._add("ld.shared.b32 %v, [%sx];", "mad.lo.s32 %acc, %acc, 5, %v;")
        if loop.scratch > 1:
            self._add("bar.sync 0;")

    def _next(self, s: int, one: Stream) -> None:
        """The slots of the next turn."""
        for name, distance in ((f"%rs{s}", 0), (f"%ws{s}", one.distance)):
            if one.ring == "wrap":
                self._add(f"add.s64 {name}, {name}, 1;")
                self._add(f"setp.eq.b64 %p, {name}, {one.slots};")
                self._add(f"selp.b64 {name}, 0, {name}, %p;")
            elif one.ring == "mask":
                self._add(f"add.s64 %c, %t, {distance};")
                self._add(f"and.b64 {name}, %c, {one.slots - 1};")
            elif one.ring == "rem":
                self._add(f"add.s64 %c, %t, {distance};")
                self._add(f"rem.u64 {name}, %c, {one.slots};")
        if one.ring == "rotate":
            self._add(f"mov.b64 %a, %x{s}0;")
            for i in range(one.slots - 1):
                self._add(f"mov.b64 %x{s}{i}, %x{s}{i + 1};")
            self._add(f"mov.b64 %x{s}{one.slots - 1}, %a;", f"mov.b64 %rs{s}, %x{s}0;")
            self._add(f"mov.b64 %ws{s}, %x{s}{one.distance % one.slots};")

    def _add(self, *lines: str) -> None:
        self.lines += lines

    def _label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"


def drawn(seed: int) -> Kernel:
    """The kernel of that number."""
    rng = random.Random(seed)
    is_wrong = rng.random() < 0.5
    streams = tuple(_stream(rng, is_wrong) for _ in range(rng.choice((1, 1, 2))))
    loops = tuple(
        _drawn_loop(rng, streams, is_wrong) for _ in range(rng.choice((1, 1, 2)))
    )
    return Kernel(streams, loops, rng.random() < 0.1)


def _stream(rng: random.Random, is_wrong: bool) -> Stream:
    slots = rng.choice((2, 3, 4))
    rings = ["wrap", "rotate"]
    if rng.random() < 0.03:  # of which the prover knows little
        rings = ["rem"] if slots == 3 else ["mask", "rem"]
    distance = rng.randint(1, slots if is_wrong and rng.random() < 0.3 else slots - 1)
    width = rng.choice((4, 8, 16))
    shift = width if is_wrong and rng.random() < 0.05 else 0
    return Stream(
        slots, distance, width, rng.choice(rings), rng.choice(list(READS)), shift
    )


def _drawn_loop(
    rng: random.Random, streams: tuple[Stream, ...], is_wrong: bool
) -> Loop:
    def usual(value: object, *others: object, share: float = 0.3) -> object:
        return rng.choice(others) if is_wrong and rng.random() < share else value

    order = rng.choice(ORDERS)
    if is_wrong and rng.random() < 0.3:
        pieces = [*PIECES, *(["barrier"] if rng.random() < 0.5 else [])]
        rng.shuffle(pieces)
        order = tuple(pieces[: rng.choice((3, 4, 5))])
    guard = rng.choice(("branch", "branch", "predicate", "fill", "none"))
    commits = rng.choice(("turn", "turn", "stream"))
    if guard == "branch":
        commits = str(usual(commits, "guarded", share=0.15))
    groups = min(one.distance for one in streams)
    is_late = "fetch" in order and "wait" in order
    is_late = is_late and order.index("fetch") < order.index("wait")
    per_turn = len(streams) if commits == "stream" else 1
    right = (groups - 1 + is_late) * per_turn
    waits = usual(right, max(right - 1, 0), right + 1, right + per_turn, None)
    return Loop(
        order,
        waits if isinstance(waits, int) else None,
        guard,
        commits,
        str(usual("all", "wait", "none", share=0.2)),
        str(usual("always", "uniform", "odd", share=0.05)),
        rng.choice((None, None, usual(2, 0, 1))),  # type: ignore[arg-type]
    )
