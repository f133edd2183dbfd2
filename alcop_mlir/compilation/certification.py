"""Verdicts on the kernels of a bundle, under what its manifest promises of sizes."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from alcop_mlir.certificate.api import (
    ASSUMPTIONS,
    BLOCK_NUMBERS,
    Report,
    Turns,
    certify,
    check_parameters,
    find_entry,
    parsed,
)
from alcop_mlir.certificate.certificate import sealed, stored
from alcop_mlir.certificate.preconditions import Preconditions, preconditions
from alcop_mlir.certificate.search.answers import answered
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.certificate.verdicts import OutOfTime
from alcop_mlir.checker.bounds.ways import NO_WRAP
from alcop_mlir.checker.form.open_statement import is_open
from alcop_mlir.element_types import element_bytes
from alcop_mlir.errors import CertificateError, NotBoundedError, NotPlacedError
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.arrays import Parameter, named_sizes
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import (
    MOST_ADDRESS,
    AtMost,
    Condition,
    Divisible,
    Kernel,
    Pointer,
    SizeValue,
    Variant,
)
from alcop_mlir.manifest.promises import promises
from alcop_mlir.manifest.statements import Unstated, statement
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.runtime.bundle import Bundle, Code

MOST_SIZE = 2**31 - 1  # of a size or stride, in elements: what proofs ask of callers
_FEW_THREADS = 1 << 16  # that are gone through one by one before anything else
_MOST_EXTENT = 2**47  # of what the host computes of sizes


@frozen
class Launched:
    """A kernel as it is launched: all that its proof depends on.

    threads: of a block; 0 where it has more than one dimension
    """

    module: str
    name: str
    threads: int
    shared_bytes: int
    requirements: tuple[tuple[str, Requirement], ...]
    promised: Preconditions
    stated: str


def certify_bundle(bundle: Bundle, seconds: float) -> list[Report]:
    """The verdict on each kernel, for each way in which it is launched."""
    return [
        certified(
            bundle.code[one.module].ptx,
            one.name,
            one.threads,
            one.shared_bytes,
            dict(one.requirements),
            seconds,
            one.promised,
            one.stated,
        )
        for one in launched_kernels(bundle)
    ]


def certified_bundle(bundle: Bundle, seconds: float) -> tuple[Bundle, list[Report]]:
    """The bundle with verdicts and certificates in it, and the verdicts."""
    launched = launched_kernels(bundle)
    reports = certify_bundle(bundle, seconds)
    code: dict[str, Code] = {}
    for name, one in bundle.code.items():
        found = [
            {**report.to_json(), "certificate": report.certificate}
            for kernel, report in zip(launched, reports, strict=True)
            if kernel.module == name
        ]
        code[name] = replace(one, certificates=stored(found))
    return replace(bundle, code=code), reports


def certified(
    ptx: str,
    entry: str,
    threads: int | None,
    shared_bytes: int | None,
    requirements: Mapping[str, Requirement],
    seconds: float,
    promised: Preconditions | None = None,
    stated: str = "",
    shares_stores: bool = False,
) -> Report:
    """The prover's verdict; proven is only what the checker accepts too.

    promised: of arrays and blocks; None for nothing
    stated:   what it computes, as JSON text of a statement; else why there is none
    shares_stores: whether threads that store to one place at once are taken to store
              the same

    The certificate keeps the states that the check has met.
    """
    given = Preconditions() if promised is None else promised
    kernel = find_entry(parsed(ptx), entry)
    check_parameters(kernel, given.arrays)
    if stated.startswith("{"):
        check_parameters(kernel, json.loads(stated)["arrays"])
    proof = _Proof(ptx, given, stated, seconds)
    names = {*BLOCK_NUMBERS, *(one.name for one in kernel.parameters)}
    known = {n: one for n, one in given.requirements().items() if n in names}
    required = {**known, **requirements}
    start = time.perf_counter()
    turns: Turns = "apart" if proof.has_windows else "steady"

    def proven(turns: Turns) -> Report:
        task = (ptx, entry, threads, shared_bytes, required, seconds)
        return certify(*task, turns, shares_stores)

    report = proven(turns)
    if report.status != "proven" and any(map(_is_number, required.values())):
        # Of a size that is a number no fact says how far turns are from it.
        required = {name: _unknown(one) for name, one in required.items()}
        report = proven(turns)
    try:
        report = proof.checked_whole(report)
        if report.certificate is None and report.is_steady:
            report = proof.checked_whole(proven("alike"))
        if proof.needs_turns(report):
            report = proof.placed_or(report, proven("apart"))
    except OutOfTime as late:
        report = replace(report, status="not proven", why=str(late), certificate=None)
    return replace(report, seconds=time.perf_counter() - start)


def _is_number(one: Requirement) -> bool:
    return one.low == one.high


def _unknown(one: Requirement) -> Requirement:
    """Any size that is a multiple of the same power of two, instead of one number."""
    if not _is_number(one) or not 0 < one.low <= MOST_SIZE:
        return one
    return Requirement(0, MOST_SIZE, one.low & -one.low)


class _Proof:
    """Of a kernel of which it is shown that it uses shared memory right: the rest, and
    that the checker accepts all.

    known: answers that were found before
    until: the CPU time at which nothing more is searched for
    """

    def __init__(self, ptx: str, given: Preconditions, stated: str, seconds: float):
        self.ptx, self.given, self.stated = ptx, given, stated
        self.until = time.process_time() + seconds
        self.known: dict[Any, Any] = {}
        # Of windows all threads are gone through one by one.
        self.has_windows = '"windows"' in stated

    def needs_turns(self, report: Report) -> bool:
        """Whether turns, which are told apart where they are shown to be steady, may
        have to be although they are not.
        """
        is_open = report.is_steady or report.is_placed or report.certificate is None
        return not (is_open or self.has_windows) and self.stated.startswith("{")

    def placed_or(self, report: Report, other: Report) -> Report:
        """The other report, if it has results placed in time; else the first."""
        try:
            whole = self.checked_whole(other)
        except OutOfTime:
            return report
        return whole if whole.is_placed else report

    def checked_whole(self, shown: Report) -> Report:
        """With bounds and results, as far as the checker accepts them."""
        if shown.certificate is None:
            return shown
        loose = ""
        for by_numbers in self._ways_to_bounds(shown):
            try:
                return self._with_results(self._bounded(shown, by_numbers))
            except NotBoundedError as error:
                loose = loose if by_numbers and loose else str(error)
        return self._with_results(replace(shown, loose=loose))

    def _ways_to_bounds(self, report: Report) -> tuple[bool, ...]:
        """Whether by the numbers of all threads, or by terms of one that stands for
        all: what takes less time first. Of loops that is by terms, if it has not to be
        shown besides that they end.
        """
        found, blocks = report.certificate or {}, self.given.blocks
        if blocks is None:
            return (False,)
        is_few = blocks * found["threads"] <= _FEW_THREADS
        has_loops = NO_WRAP in found["assumes"] and report.is_ending
        by_numbers = self.has_windows or (is_few and not has_loops)
        return (True, False) if by_numbers else (False, True)

    def _bounded(self, report: Report, by_numbers: bool) -> Report:
        """The report with what the check is to show of accesses to global memory; what
        that asks for is searched for then.
        """
        found = report.certificate or {}
        assumed = {*found["assumes"], *([] if by_numbers else [NO_WRAP])}
        promised = {**self.given.to_json(), "by_numbers": by_numbers}
        whole = sealed({**found, "bounds": promised, "assumes": sorted(assumed)})
        is_ending = report.is_ending or by_numbers  # all are run to their ends
        return replace(report, is_bounded=True, is_ending=is_ending, certificate=whole)

    def _with_results(self, report: Report) -> Report:
        """The report as the checker accepts it, with what it shows of results."""
        if not self.stated.startswith("{"):
            why = self.stated or "nothing says what it computes"
            return self._checked(replace(report, misplaced=why))
        statement = json.loads(self.stated)
        if is_open(statement) and not report.is_bounded:
            why = "accesses are not bounded"
            return self._checked(replace(report, misplaced=why))
        whole = sealed({**(report.certificate or {}), "placed": statement})
        try:
            return self._checked(replace(report, is_placed=True, certificate=whole))
        except NotPlacedError as error:
            return self._checked(replace(report, misplaced=str(error)))

    def _checked(self, report: Report) -> Report:
        """The report, with its certificate as the checker accepts it.

        Raises NotBoundedError or NotPlacedError where it does not accept that.
        """
        try:
            whole = answered(self.ptx, report.certificate or {}, self.known, self.until)
        except CertificateError as error:
            if isinstance(error, NotBoundedError):
                raise
            if report.is_placed:
                raise NotPlacedError(str(error)) from error
            if report.is_bounded:
                raise NotBoundedError(str(error)) from error
            why = f"the checker does not accept the proof: {error}"
            return replace(report, status="outside", why=why, certificate=None)
        every = dict.fromkeys((*ASSUMPTIONS, *whole["assumes"]))
        return replace(
            report,
            certificate=whole,
            heads=len(whole["heads"]),
            assumptions=tuple(every),
        )


def launched_kernels(bundle: Bundle) -> list[Launched]:
    """The kernels of all functions, each way of launching one once."""
    found: dict[Launched, None] = {}
    for function in bundle.functions:
        for launch in function.launches:
            for variant in launch.variants:
                found.update(dict.fromkeys(_of_variant(bundle, function, variant)))
    return list(found)


def _of_variant(
    bundle: Bundle, function: Function, variant: Variant
) -> Iterator[Launched]:
    known = _aligned(function.parameters)
    for name, more in _guarded(variant.guard).items():
        known[name] = _both(known.get(name, Requirement(0, MOST_SIZE)), more)
    any_size = Requirement(0, MOST_SIZE)
    sizes = {n: known.get(n, any_size) for n in named_sizes(function.parameters)}
    for kernel in variant.kernels:
        entry = find_entry(parsed(bundle.code_of(kernel).ptx), kernel.name)
        parameters = [one.name for one in entry.parameters]
        given = promises(function, variant, kernel, parameters)
        yield Launched(
            kernel.module,
            kernel.name,
            kernel.block[0] if kernel.block[1:] == (1, 1) else 0,
            kernel.shared_bytes,
            _requirements(kernel, parameters, known),
            preconditions(given, sizes),
            _stated(function, kernel, parameters),
        )


def _stated(function: Function, kernel: Kernel, parameters: Sequence[str]) -> str:
    try:
        found = statement(function, kernel, parameters)
    except Unstated as why:
        return str(why)
    return json.dumps(found, sort_keys=True)


def _aligned(parameters: Iterable[Parameter]) -> dict[str, Requirement]:
    """What promises of rows say of sizes; each launch checks them."""
    found: dict[str, Requirement] = {}
    for one in parameters:
        length = element_bytes(one.dtype)
        by = one.row_alignment // math.gcd(one.row_alignment, length)
        for name in (*one.shape[-1:], *(one.strides or ())):
            if isinstance(name, str):
                known = found.get(name, Requirement(0, MOST_SIZE))
                found[name] = _both(known, Requirement(0, MOST_SIZE, by))
    return found


def _guarded(guard: tuple[Condition, ...]) -> dict[str, Requirement]:
    """What a guard says of sizes that it names alone."""
    found: dict[str, Requirement] = {}
    for condition in guard:
        if isinstance(condition, Divisible):
            factor, name = _alone(condition.value)
            by = condition.by // math.gcd(condition.by, factor)
            known = Requirement(0, MOST_SIZE, by)
        elif isinstance(condition, AtMost) and condition.least.known is not None:
            factor, name = _alone(condition.most)
            known = Requirement(-(-condition.least.known // max(factor, 1)), MOST_SIZE)
        elif isinstance(condition, AtMost) and condition.most.known is not None:
            factor, name = _alone(condition.least)
            known = Requirement(0, condition.most.known // max(factor, 1))
        else:
            continue
        if name and factor > 0:
            found[name] = _both(found.get(name, Requirement(0, MOST_SIZE)), known)
    return found


def _alone(value: Polynomial) -> tuple[int, str]:
    """A number and the size that it multiplies, where that is all; else no name."""
    if len(value.terms) != 1 or len(value.terms[0][1]) != 1:
        return 1, ""
    ((factor, (name,)),) = value.terms
    return factor, name


def _both(one: Requirement, other: Requirement) -> Requirement:
    low, high = max(one.low, other.low), min(one.high, other.high)
    multiple = math.lcm(one.multiple, other.multiple)
    return Requirement(max(low, 0), high, multiple)


def _requirements(
    kernel: Kernel, parameters: Sequence[str], guarded: Mapping[str, Requirement]
) -> tuple[tuple[str, Requirement], ...]:
    """What the launch promises of the parameters that are sizes."""
    found: list[tuple[str, Requirement]] = []
    for name, argument in zip(parameters, kernel.arguments, strict=False):
        if isinstance(argument, Pointer):
            found.append((name, Requirement(0, MOST_ADDRESS)))
        if not isinstance(argument, SizeValue):
            continue
        size = argument.size
        if isinstance(size, int):
            known = Requirement(size, size)
        elif isinstance(size, Polynomial):
            known = Requirement(0, _MOST_EXTENT)
        else:
            known = guarded.get(size, Requirement(0, MOST_SIZE))
        found.append((name, known))
    return tuple(found)
