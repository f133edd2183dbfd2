"""Verdicts on the kernels of a bundle, under what its manifest promises of sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from alcop_mlir.certificate.api import Report, certify, find_entry
from alcop_mlir.certificate.certificate import sealed, stored
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError
from alcop_mlir.manifest.kernels import (
    Condition,
    Divisible,
    Kernel,
    SizeValue,
    Variant,
)
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.runtime.bundle import Bundle, Code
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx

MOST_SIZE = 2**31 - 1  # of a size or stride, in elements: what proofs ask of callers
_MOST_EXTENT = 2**47  # of what the host computes of sizes


@dataclass(frozen=True)
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
    report = certify(ptx, entry, threads, shared_bytes, requirements, seconds)
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
    multiples = _multiples(variant.guard)
    for kernel in variant.kernels:
        required = _requirements(bundle, kernel, multiples)
        threads = math.prod(kernel.block)
        yield Launched(
            kernel.module, kernel.name, threads, kernel.shared_bytes, required
        )


def _multiples(guard: tuple[Condition, ...]) -> dict[str, int]:
    """Of sizes that a guard names alone, what divides them."""
    found: dict[str, int] = {}
    for condition in guard:
        if isinstance(condition, Divisible) and len(condition.value.terms) == 1:
            ((factor, names),) = condition.value.terms
            if len(names) == 1:
                by = condition.by // math.gcd(condition.by, factor)
                found[names[0]] = math.lcm(found.get(names[0], 1), by)
    return found


def _requirements(
    bundle: Bundle, kernel: Kernel, multiples: Mapping[str, int]
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
            known = Requirement(0, MOST_SIZE, multiples.get(size, 1))
        found.append((parameter.name, known))
    return tuple(found)
