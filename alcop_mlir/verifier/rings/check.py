"""Checks rings of mbarriers between the roles of warps: `check_rings(op)`.

For kernels with copies by TMA, as alcop-specialize-warps leaves them, after
alcop-make-persistent too, and behind alcop-lower-mma, until buffers become parts of one
block of shared memory. Nothing of the plans or the passes is known here: the IR is
run. What is checked, for every trip count of every loop, 0 and 1 included, and for
loops in loops over tiles, with other trip counts in each tile:

- each read of a slot, by wgmma until its group has ended, is behind the wait for the
  copies into it, and before their successors; slots are read in the order of filling
- copies bring as many bytes as their phase expects, into different parts of a slot
- each wait is for a phase that its parity tells from all others, and each arrival and
  copy is for one phase: so no phase is missed, and none ends twice
- accumulators are used when their group has ended
- once wgmma are instructions: each reads one slot, as its descriptors say; none comes
  before a `wgmma.fence`, nor goes on with accumulators that other ops have read or
  written since the last one; all are in committed groups
- what threads have written to shared memory, and TMA stores, was written before it by
  all of them, with a `fence.proxy.async` on the way, and is written again only when
  the store has read it
- nobody waits for ever, and nothing is left over: no phase begun, no slot unread, no
  group unfinished
- in clusters, of which all blocks are run: that their mbarriers are seen, and there as
  long as others arrive at them

*One order of time is enough.* Threads that do the same are one process
(`threads.lanes`). No process branches on what it finds in memory or on who came first,
and what is checked lets no step be undone by another process: a wait whose phase has
ended still finds it so when it looks, an arrival has one phase to count for. Such
systems are determinate (Karp and Miller 1966, on marked graphs Commoner et al. 1971):
all orders of time run the same events and end alike, and what one of them orders by
waiting all of them do. So one order is run, with vector clocks (Fidge, Mattern 1988)
in place of time: to be before is to be known to be.

*All trip counts.* A bound that is not known is decided when it is needed: "is it more
than n?" All processes run until each has ended, waits for another, or for such an
answer; then both answers are followed, by copies of all processes. The paths of this
tree are all trip counts. It is finite, as states that are alike are followed once
(`alike`): of clocks and phases only orders and parities matter, and of a loop what is
left of it. With S slots a state comes again after 2 S iterations, for which a parity
has two rounds. Constant bounds above `kernel.LONG` are treated so, too. In the next
iteration of an outer loop the same bound is asked for anew, so that each tile may have
another trip count, the same one for all that have the same bound.

What is assumed: all threads of a block get the same sizes, counters do not overflow,
copies and wgmma end at last, and a copy brings all bytes of its box. Lanes of a warp
meet at ops with `.aligned`; that all of them come is checked. Mbarriers are those of
PTX ISA, "Asynchronous barriers"; within a block their init needs no fence but a
barrier, since copies use them by the generic proxy. Blocks of a cluster get the same
numbers but that of the block. Slots are written by copies alone,
another op that stores into them is refused, as is wgmma of tiles that threads have
written: so they need no fence between proxies. Of what TMA stores all is taken to be
written at each write, and read by each store; but where each warp has slots of its own
(`warp_slots.py`), these are told apart. A `fence.proxy.async` orders what its
thread knows, whether that thread has written it or another (PTX ISA, "Memory
Consistency Model", proxy-preserved base causality order). Threads come to a named
barrier in the same company each time. Global memory is not looked at.

What is not understood is an error too: nothing is shown of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside, root
from alcop_mlir.verifier.rings import alike
from alcop_mlir.verifier.rings.code import Compiler, Instruction, Register
from alcop_mlir.verifier.rings.events import LOAD, STORE, Ops
from alcop_mlir.verifier.rings.kernel import Kernel
from alcop_mlir.verifier.rings.numbers import Question, with_answer
from alcop_mlir.verifier.rings.processes import Place, Process
from alcop_mlir.verifier.rings.products import HELD, WGMMA, is_text
from alcop_mlir.verifier.rings.records import Wrong
from alcop_mlir.verifier.rings.run import Run
from alcop_mlir.verifier.rings.state import State
from alcop_mlir.verifier.rings.threads import Threads, lanes
from alcop_mlir.verifier.rings.unproven import Unproven
from alcop_mlir.verifier.violations import Violation

_KERNELS = ("gpu.launch", "gpu.func")
_MOST_STATES = 1_000
UNKNOWN_TEXT = "this is text of PTX, which may copy, wait or multiply"
_BUFFER = "memref.alloc"


def check_rings(op: ir.Operation) -> list[Violation]:
    """What is wrong with the rings of mbarriers in `op`; nothing is changed."""
    found = [_check(one) for one in _kernels(op) if _is_checked(one)]
    return [wrong for wrong in found if wrong is not None]


def _kernels(op: ir.Operation) -> list[Any]:
    return [one for one in (op.operation, *inside(op)) if one.name in _KERNELS]


def _is_checked(kernel: Any) -> bool:
    """Whether roles are played: not where buffers have become parts of one block.

    Nor where wgmma may be text of PTX: `in_text`.
    """
    copies, products, texts = _parts(kernel)
    if not copies or not products:
        return bool(copies)
    return not texts and all(map(_fills_buffer, copies))


def _parts(kernel: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """The copies by TMA, the wgmma, and the text of PTX in a kernel."""
    ops = [*inside(kernel)]
    copies = [one for one in ops if one.name in (LOAD, STORE)]
    products = [one for one in ops if one.name in (WGMMA, HELD)]
    return copies, products, [one for one in ops if is_text(one)]


def in_text(op: ir.Operation) -> list[ir.Operation]:
    """For each kernel with copies by TMA and wgmma the first op whose text of PTX may
    do anything, for which its rings are not checked.
    """
    return [
        texts[0]
        for copies, products, texts in map(_parts, _kernels(op))
        if copies and products and texts
    ]


def _fills_buffer(load: Any) -> bool:
    owner = root(load.operands[0]).owner
    return not isinstance(owner, ir.Block) and owner.operation.name == _BUFFER


def _check(kernel: Any) -> Violation | None:
    try:
        for run in _runs(kernel):
            run.advance()
            if not run.asking():
                run.end()
    except Wrong as wrong:
        return Violation(wrong.op, str(wrong))
    except Unproven as unproven:
        return Violation(
            unproven.op, f"its rings are not shown to be right: {unproven}"
        )
    return None


def _runs(kernel: Any) -> Iterator[Run]:
    """The runs of a kernel, from one question on to the next."""
    first = _start(kernel)
    pending, seen = [first], alike.Seen()
    while pending:
        run = pending.pop()
        yield run
        asking = run.asking()
        if not asking:
            continue
        alike.forget(run)
        if seen.covers(run):
            continue
        if seen.count > _MOST_STATES:
            raise Unproven(kernel, "its states do not repeat")
        question = _first(run, asking)
        for answer in (True, False):
            other = run.clone()
            other.known = with_answer(run.known, question, answer)
            pending.append(other)


def _first(run: Run, asking: Sequence[int]) -> Question:
    """The question that is answered next: of inner loops, then of small numbers."""
    questions = [run.places[number].question for number in asking]
    known = [one for one in questions if one is not None]
    return min(known, key=lambda one: (-len(one.about[1]), one.least))


def _start(kernel: Any) -> Run:
    """All processes, before they begin."""
    common = Kernel(Ops(kernel), Threads.of(kernel))
    processes, places = [], []
    largest = 0
    for one in lanes(common.threads, common.signatures()):
        compiler = Compiler(common, one.first)
        code = compiler.compile()
        accumulators = frozenset(compiler.accumulators())
        processes.append(Process(one, code, _live(code), accumulators, _bounds(code)))
        registers: list[Any] = [None] * compiler.registers
        for register, value in compiler.start.items():
            registers[register] = value
        places.append(Place(0, registers))
        largest = max(largest, *(_compared(step) for step in code))
    names = [str(buffer) for _, buffer in common.ops.buffers.values()]
    blocks = [process.lanes.block for process in processes]
    count = common.threads.blocks
    state = State.at_start(blocks, common.ops.mbarriers, names, count)
    long = common.atoms.long()
    return Run(processes, common.atoms, places, state, {}, long, largest + 1, count)


def _compared(step: Instruction) -> int:
    """The largest integer that an instruction compares with."""
    if step.kind != "compare":
        return 0
    return max((abs(use) for use in step.uses if isinstance(use, int)), default=0)


def _bounds(code: Sequence[Instruction]) -> frozenset[int]:
    """The registers that only loops read."""
    bounds = {one.data.upper for one in code if one.kind == "loop"}
    others = [use for one in code if one.kind != "loop" for use in one.uses]
    return frozenset(bounds - {u.number for u in others if isinstance(u, Register)})


def _live(code: Sequence[Instruction]) -> list[frozenset[int]]:
    """The registers that are still read, before each instruction."""
    live = [frozenset[int]() for _ in code]
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(code))):
            one = code[at]
            following = [] if one.kind in ("jump", "end") else [at + 1]
            following += [one.target] if one.target >= 0 else []
            after = frozenset[int]().union(*(live[place] for place in following))
            used = {use.number for use in one.uses if isinstance(use, Register)}
            before = (after - set(one.defs)) | used
            if before != live[at]:
                live[at], changed = before, True
    return live
