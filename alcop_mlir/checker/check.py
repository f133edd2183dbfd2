"""The check of a certificate: each listed state once, and what it meets is listed.

What is shown is what `docs/certificates.md` says. By induction over turns each run only
meets listed states (`listed_states`), and no access on the way breaks a rule.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any, NamedTuple

from alcop_mlir import collector
from alcop_mlir.checker.bounds.accesses import check_bounds
from alcop_mlir.checker.bounds.ways import NO_WRAP
from alcop_mlir.checker.form.certificate import Certificate, Head, read_certificate
from alcop_mlir.checker.form.open_statement import OpenStatement
from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.listed_states import ListedStates
from alcop_mlir.checker.logic.facts import Answers, Facts
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.registers import SAME_STORES
from alcop_mlir.checker.placed.gathers import Gathers
from alcop_mlir.checker.placed.open_accesses import Accesses
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.shared_addresses import check_addresses
from alcop_mlir.checker.ptx.text import Kernel, read_kernel
from alcop_mlir.errors import CertificateError, NotBoundedError, NotPlacedError

Seen = Accesses | Gathers  # what has looked at accesses to global memory


class Checked(NamedTuple):
    """What a check went by: listed states that it met, and what it took for granted."""

    met: tuple[int, ...]
    assumed: frozenset[str]


def check(
    ptx: str,
    value: Any,
    answers: Answers | None = None,
    shares_stores: bool = False,
) -> Checked:
    """Checks a certificate, as JSON values, against PTX text.

    answers: instead of those that the certificate has
    shares_stores: whether it may assume that threads that store to one place at once
             store the same

    Raises CertificateError where it does not hold, is of other PTX, or is no
    certificate.
    """
    with collector.paused():  # nothing that a check drops refers to itself
        return _check(ptx, value, answers, shares_stores)


def _check(
    ptx: str, value: Any, answers: Answers | None, shares_stores: bool
) -> Checked:
    given = read_certificate(value, answers)
    if hashlib.sha256(ptx.encode()).hexdigest() != given.ptx_sha256:
        raise CertificateError("the certificate is of other PTX")
    if SAME_STORES in given.assumes and not shares_stores:
        raise CertificateError(f"the certificate assumes that {SAME_STORES}")
    kernel = read_kernel(ptx, given.entry)
    if kernel.threads not in (0, given.threads):
        raise CertificateError("the certificate is for another number of threads")
    _check_layout(given, kernel.shared)
    machine = _machine(given, kernel)
    if machine.grain != given.cell_bytes:
        raise CertificateError("the certificate has cells of another size")
    flow = Flow(kernel)
    if given.shared_bytes:
        _check_spaces(flow)
        check_addresses(flow, given.variables)
    found = ListedStates(given, machine, flow, given.heads)
    met = {*found.run()}
    stated = given.placed
    seen: Seen | None = None
    if isinstance(stated, OpenStatement):
        if given.bounds is None or given.bounds.by_numbers:
            raise NotPlacedError("accesses are not bounded")
        seen = Accesses(stated)
    elif stated is not None and stated.windows:
        if given.bounds is None or not given.bounds.by_numbers:
            raise NotPlacedError("not all threads are gone through one by one")
        seen = Gathers(stated, given.answers)
    if given.bounds is not None:
        task = (kernel, flow, given.threads, given.bounds, given.answers)
        try:
            machine.assumed.update([NO_WRAP] if check_bounds(*task, seen) else [])
        except NotPlacedError:
            raise
        except CertificateError as error:
            raise NotBoundedError(str(error)) from error
    if stated is not None:
        states, other = _placed(given, found, stated, seen)
        met |= states
        machine.assumed |= other.assumed
    if machine.assumed - {*given.assumes}:
        raise CertificateError("the certificate does not say what it assumes")
    if all(len(ages) == 1 for ages in machine.ages.values()) != given.fresh:
        raise CertificateError("the certificate is wrong about freshness")
    if found.ends != given.ends:
        raise CertificateError("the certificate is wrong about the end of loops")
    return Checked(tuple(sorted(met)), frozenset(machine.assumed))


def _placed(
    given: Certificate, first: ListedStates, stated: Statement, seen: Seen | None
) -> tuple[set[int], Machine]:
    """Which listed states are met where results are followed: with one state for all
    turns but the first, or where tags do not say what turns add, with each.
    Loops that the first walk did not go through, as threads leave them in turns of
    their own, are gone through turn by turn here.
    """
    is_open = isinstance(stated, OpenStatement)
    unrolled = set[int]() if is_open else first.walk.skipped_loops

    def follow(heads: list[Head]) -> tuple[set[int], Machine]:
        machine = _machine(given, first.machine.kernel)
        task = given, machine, first.flow, heads, stated, seen, unrolled
        return {*ListedStates(*task).run()}, machine

    ways = [partial(follow, given.heads)]
    later = [one.of_later_turns() for one in given.heads]
    if is_open:
        later = [h.of_any_facts() if first.is_last(h.pc) else h for h in later]
    if later != given.heads:
        ways.insert(0, partial(follow, later))
    return given.answers.by(ways)


def _machine(given: Certificate, kernel: Kernel) -> Machine:
    machine = Machine(
        kernel,
        given.threads,
        given.shared_bytes,
        given.variables,
        given.requires,
        given.steady,
        Facts(given.answers),
    )
    machine.shares_stores = SAME_STORES in given.assumes
    return machine


def _check_spaces(flow: Flow) -> None:
    """No instruction may access shared memory that does not say so: also none of those
    that are gone over, as nothing else depends on them.
    """
    for block in flow.reached:
        for ins in flow.code[block : flow.stop[block]]:
            if ins.is_generic:
                raise CertificateError(f"an address of no state space: {ins.opcode}")


def _check_layout(given: Certificate, shared: list[tuple[str, int, int]]) -> None:
    """Variables lie where the text has them: those of unknown size last."""
    places: dict[str, int] = {}
    top = 0
    for name, align, size in sorted(shared, key=lambda one: not one[2]):
        top = -(-top // align) * align
        places[name] = top
        top += size
    if any(not size for _, _, size in shared):
        top += given.dynamic_bytes
    if places != given.variables or given.shared_bytes != top:
        raise CertificateError("the certificate has another layout of shared memory")
