"""Verdicts on the kernels of a bundle, under what its manifest promises of sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from alcop_mlir.certificate.api import BLOCK_NUMBERS, Report, certify, find_entry
from alcop_mlir.certificate.certificate import sealed, stored
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.kernels import (
    AtMost,
    Condition,
    Divisible,
    Kernel,
    SizeValue,
    Variant,
    block_counts,
)
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.runtime.bundle import Bundle, Code
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx

MOST_SIZE = 2**31 - 1  # of a size or stride, in elements: what proofs ask of callers
_MOST_EXTENT = 2**47  # of what the host computes of sizes


@frozen
class Launched:
    """A kernel as it is launched: all that its proof depends on."""

    module: str
    name: str
    threads: int
    shared_bytes: int
    requirements: tuple[tuple[str, Requirement], ...]


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
) -> Report:
    """The prover's verdict; proven is only what the checker accepts too.

    The certificate keeps the states that the check has met.
    """
    task = (ptx, entry, threads, shared_bytes, requirements, seconds)
    report = _checked(ptx, certify(*task))
    is_refused = report.certificate is None and report.is_steady
    return _checked(ptx, certify(*task, False)) if is_refused else report


def _checked(ptx: str, report: Report) -> Report:
    """The report, with its certificate as the checker accepts it."""
    found = report.certificate
    if found is None:
        return report
    try:
        met = check(ptx, found)
    except CertificateError as error:
        why = f"the checker does not accept the proof: {error}"
        return replace(report, status="outside", why=why, certificate=None)
    heads = [found["heads"][number] for number in met]
    whole = sealed({**found, "heads": heads})
    return replace(report, certificate=whole, heads=len(heads))


def launched_kernels(bundle: Bundle) -> list[Launched]:
    """The kernels of all functions, each way of launching one once."""
    found: dict[Launched, None] = {}
    for function in bundle.functions:
        for launch in function.launches:
            for variant in launch.variants:
                found.update(dict.fromkeys(_of_variant(bundle, variant)))
    return list(found)


def _of_variant(bundle: Bundle, variant: Variant) -> Iterator[Launched]:
    guarded = _guarded(variant.guard)
    for kernel in variant.kernels:
        required = _requirements(bundle, kernel, guarded)
        threads = math.prod(kernel.block)
        yield Launched(
            kernel.module, kernel.name, threads, kernel.shared_bytes, required
        )


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
    bundle: Bundle, kernel: Kernel, guarded: Mapping[str, Requirement]
) -> tuple[tuple[str, Requirement], ...]:
    """What the launch promises of the parameters that are sizes."""
    entry = find_entry(parse_ptx(bundle.code_of(kernel).ptx), kernel.name)
    found: list[tuple[str, Requirement]] = []
    for parameter, argument in zip(entry.parameters, kernel.arguments, strict=False):
        if not isinstance(argument, SizeValue):
            continue
        size = argument.size
        if isinstance(size, int):
            known = Requirement(size, size)
        elif isinstance(size, Polynomial):
            known = Requirement(0, _MOST_EXTENT)
        else:
            known = guarded.get(size, Requirement(0, MOST_SIZE))
        found.append((parameter.name, known))
    for name, blocks in zip(BLOCK_NUMBERS, kernel.grid, strict=True):
        counts = [one for one in block_counts(blocks) if isinstance(one, int)]
        if len(counts) == len(block_counts(blocks)):
            found.append((name, Requirement(0, max(math.prod(counts) - 1, 0))))
    return tuple(found)
