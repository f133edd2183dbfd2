"""That each access to global memory is inside of the array that its address is of."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from alcop_mlir.checker.bounds.every_thread import EveryThread, SeesAll
from alcop_mlir.checker.bounds.thread import Thread
from alcop_mlir.checker.bounds.ways import Ways
from alcop_mlir.checker.form.certificate import Promises
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers
from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.checker.machine.arithmetic import Same
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.instructions import (
    Instruction,
    is_global,
    most_bytes,
    names_in,
    places_of,
    source_size,
)
from alcop_mlir.checker.ptx.text import Kernel
from alcop_mlir.errors import CertificateError


@runtime_checkable
class Seen(Protocol):
    """What looks at accesses too."""

    def see(self, thread: Thread, ins: Instruction) -> None:
        """One, where a thread stands that stands for all."""
        ...

    def seen(self, thread: Thread, ways: Ways) -> None:
        """All have been gone through."""
        ...


def check_bounds(
    kernel: Kernel,
    flow: Flow,
    threads: int,
    given: Promises,
    answers: Answers,
    also: Seen | SeesAll | None = None,
) -> bool:
    """CertificateError where an access is not inside; whether it is assumed that
    counters stay in half of their ranges. By numbers all threads are run to their ends
    too.

    also: looks at them too: Seen where one thread stands for all, else SeesAll
    """
    if given.by_numbers:
        by_numbers(
            kernel, flow, threads, given, None if isinstance(also, Seen) else also
        )
        return False
    if not any(map(is_global, kernel.code)):
        return False
    thread = Thread(kernel, threads, given, answers)
    seen = also if isinstance(also, Seen) else None

    def visit(ins: Instruction) -> None:
        if not is_global(ins):
            return
        if why := _outside(thread, ins):
            raise CertificateError(ins.told(why))
        if seen is not None:
            seen.see(thread, ins)

    ways = Ways(thread, flow, _needed(kernel))
    ways.run(visit)
    if seen is not None:
        seen.seen(thread, ways)
    return ways.assumes_no_wrap


def by_numbers(
    kernel: Kernel, flow: Flow, threads: int, given: Promises, also: SeesAll | None
) -> None:
    """The same of all threads, one by one."""
    EveryThread(flow, threads, given, _needed(kernel), also).run()


def _needed(kernel: Kernel) -> set[str]:
    """Registers of which addresses, sizes and guards are computed."""
    names: set[str] = set()
    for ins in kernel.code:
        if is_global(ins):
            places = [o for o in ins.operands if o.startswith("[")]
            sizes = ins.operands[3:] if ins.parts[0] == "cp" else ()
            names.update(n for one in (*places, *sizes) for n in names_in(one))
        if ins.guard and (ins.parts[0] == "bra" or is_global(ins)):
            names.add(ins.guard)
    grows = True
    while grows:
        before = len(names)
        for ins in reversed(kernel.code):
            if ins.parts[0] != "ld" and not names.isdisjoint(ins.results):
                names |= ins.reads - {""}
        grows = len(names) > before
    return names


def _outside(thread: Thread, ins: Instruction) -> str:
    """Why an access is not shown to be inside of an array; empty where it is."""
    every = [_outside_at(thread, ins, place) for place in places_of(ins)]
    return next(filter(None, every), "") if every else "its address is not known"


def _outside_at(thread: Thread, ins: Instruction, place: tuple[str, int]) -> str:
    address = thread.value(place[0])
    if not isinstance(address, Same):
        return "its address is not known"
    pointers = [s for s in address.term if s[1:] in thread.given.arrays and s[0] == "."]
    if len(pointers) != 1 or address.term[pointers[0]] != 1:
        return "its address is not computed of one array's"
    array = pointers[0][1:]
    bytes_, lengths = thread.given.arrays[array]
    offset = terms.plus(address.term, {pointers[0]: -1, "": place[1]})
    guard = thread.holds(thread.guard(ins))
    runs: Clause = [[]] if guard is None else guard.true
    size, when = size_of(thread, ins)
    end = terms.plus(terms.plus(offset, size), terms.number(-1))
    none = [terms.negative(thread.polynomial(one)) for one in lengths]
    outside = [
        ("before", terms.opposite(offset)),
        ("behind", terms.minus(end, thread.polynomial(bytes_))),
        *(("in none of the bytes of", fact) for fact in none),
    ]
    some = terms.plus(size, terms.number(-1))
    for side, fact in outside:
        if not thread.never([[*a, *b, fact, some] for a in runs for b in when]):
            return f"it may be {side} the array of {array}"
    return ""


def size_of(thread: Thread, ins: Instruction) -> tuple[Term, Clause]:
    """How many bytes it accesses, and when it does."""
    size, source = terms.number(most_bytes(ins)), source_size(ins)
    width = thread.kernel.width(source.lstrip("! ")) if source else 0
    value = thread.named(thread.value(source), width) if source else None
    if isinstance(value, Same):
        less = terms.minus(size, value.term)
        if value.high > most_bytes(ins) and not thread.known(less):
            raise CertificateError(ins.told("it may read more than it copies"))
        return (value.term, [[]]) if value.low >= 0 else (size, [[]])
    ignored = thread.holds(value)
    return (size, [[]]) if ignored is None else (size, ignored.false)
