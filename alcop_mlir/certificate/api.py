"""Certifying PTX: the verdict on one entry, and on all of a bundle's kernels."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from alcop_mlir.certificate import certificate as form
from alcop_mlir.certificate.proof import Proof
from alcop_mlir.certificate.prover import prove
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.certificate.verdicts import Alarm, Finding, OutOfTime, Outside, Status
from alcop_mlir.errors import ConfigError
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx
from alcop_mlir.runtime.emulator.ptx.syntax import Module, PtxKernel

BLOCK_NUMBERS = ("%ctaid.x", "%ctaid.y", "%ctaid.z")
Turns = Literal["steady", "apart", "alike"]
SECONDS = 120.0  # of CPU time, for one kernel
# What every proof takes for granted, besides what it notes itself.
ASSUMPTIONS = (
    "the PTX ISA's rules for cp.async.wait_group and bar.sync",
    "blocks have one dimension, and %laneid is %tid.x % 32",
    "an array that the kernel writes overlaps no other one",
    "ptxas keeps the meaning of the PTX",
)


@dataclass(frozen=True)
class Report:
    """The verdict on one entry.

    finding:     the first alarm, where it is not proven
    why, line:   what is outside of the model, and where; or that there was no time
    is_fresh:    each load always reads copies that are the same number of groups old
    is_ending:   all loops end
    is_steady:   each load reads copies of the tile of its turn; not asked where results
                 are placed
    is_bounded:  each access to global memory is inside of an array: what the check
                 of a certificate shows, not the proof itself
    loose:       the first access that is not shown to be, and why
    is_placed:   each result is made of the right elements, and stored as itself: what
                 the check of a certificate shows; it says more than is_steady
    misplaced:   why not
    certificate: as JSON values, where it is proven
    """

    entry: str
    status: Status
    seconds: float
    finding: Finding | None = None
    why: str = ""
    line: int | None = None
    is_fresh: bool = False
    is_ending: bool = False
    is_steady: bool = False
    is_bounded: bool = False
    loose: str = ""
    is_placed: bool = False
    misplaced: str = ""
    heads: int = 0
    assumptions: tuple[str, ...] = ()
    certificate: dict[str, Any] | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not shown of a kernel that uses shared memory right."""
        if self.status != "proven":
            return ()
        shown = {
            "ends": self.is_ending,
            "steady": self.is_steady or self.is_placed,
            "bounded": self.is_bounded,
            "placed": self.is_placed,
        }
        return tuple(name for name, is_shown in shown.items() if not is_shown)

    @property
    def verdict(self) -> str:
        """The status, with its reason where it is not proven, or not all of it."""
        if self.missing:
            return f"proven in part: {', '.join(self.missing)} not shown"
        if self.finding is not None:
            return f"{self.status}: {self.finding}"
        line = "" if self.line is None else f"line {self.line}: "
        return f"{self.status}: {line}{self.why}" if self.why else self.status

    def to_json(self) -> dict[str, Any]:
        """JSON values, without the certificate."""
        found = {n: v for n, v in vars(self).items() if n != "certificate"}
        found["finding"] = None if self.finding is None else vars(self.finding)
        found["missing"] = list(self.missing)
        if self.missing:
            found["status"] = "proven in part"
        return {name: value for name, value in found.items() if value is not None}


def certify(
    ptx: str,
    entry: str | None = None,
    threads: int | None = None,
    dynamic_shared: int | None = None,
    requirements: Mapping[str, Requirement] | None = None,
    seconds: float = SECONDS,
    turns: Turns = "steady",
    shares_stores: bool = False,
) -> Report:
    """The verdict on one entry of the PTX text.

    entry:          by its name; None for the only one
    threads:        of a block; None where the PTX says how many, 0 for more than one
                    dimension
    dynamic_shared: bytes that the launch adds; None for no such memory
    requirements:   what callers promise of parameters, by name; and of the numbers of
                    blocks, as %ctaid.z

    turns:          steady, to show too that each load reads the tile of its turn;
                    apart, to tell turns apart without that, as where windows are moved:
                    no turn adds the same to addresses there; or alike
    shares_stores:  whether threads that store to one place at once are taken to store
                    the same; listed as assumed, where that is used

    Raises EmulationError where the text is not PTX, ConfigError for an entry,
    parameter or number of threads that it does not have.
    """
    module = parsed(ptx)
    kernel = find_entry(module, entry)
    given = dict(requirements or {})
    check_parameters(kernel, given)
    start = time.perf_counter()
    try:
        count = _threads(kernel, threads)
        bases, shared_bytes = shared_layout(module, kernel, dynamic_shared)
        task = (module, kernel, count, shared_bytes, bases, given)
        begun = time.process_time()
        proof = prove(*task, seconds, shares_stores)
        spent = time.process_time() - begun
        left = min(seconds - spent, 2 * spent + 1)
        if turns != "alike":
            proof = _proof_of_turns(task, left, proof, turns == "steady") or proof
    except Alarm as alarm:
        taken = time.perf_counter() - start
        return Report(kernel.name, "not proven", taken, alarm.finding)
    except Outside as outside:
        taken = time.perf_counter() - start
        status = "not proven" if isinstance(outside, OutOfTime) else "outside"
        why, line = outside.why, outside.line
        return Report(kernel.name, status, taken, why=why, line=line)
    taken = time.perf_counter() - start
    is_fresh = all(len(ages) == 1 for ages in proof.machine.ages.values())
    return Report(
        kernel.name,
        "proven",
        taken,
        is_fresh=is_fresh,
        is_ending=not proof.unending,
        is_steady=proof.steady is not None,
        heads=len(proof.heads),
        assumptions=(*ASSUMPTIONS, *sorted(proof.machine.notes)),
        certificate=form.certificate(
            ptx,
            proof,
            bases,
            dynamic_shared or 0,
            _listed(given),
            is_fresh,
        ),
    )


def _proof_of_turns(
    task: tuple[
        Module,
        PtxKernel,
        int,
        int,
        dict[str, int],
        dict[str, Requirement],
    ],
    seconds: float,
    known: Proof,
    follows_sources: bool,
) -> Proof | None:
    """A proof that says too that each load reads the tile of its turn, if there is one:
    more states have to be told apart for it, and it may fail where the other holds.
    """
    try:
        shares_stores = known.machine.shares_stores
        proof = prove(*task, seconds, shares_stores, known, follows_sources)
    except (Alarm, Outside):
        return None
    return None if follows_sources and proof.steady is None else proof


@lru_cache(maxsize=2)
def parsed(ptx: str) -> Module:
    """The text as a module, which nobody changes."""
    return parse_ptx(ptx)


def find_entry(module: Module, name: str | None) -> PtxKernel:
    """The entry of that name, or the only one; ConfigError where there is none."""
    names = ", ".join(module.kernels) or "none"
    if name is None and len(module.kernels) != 1:
        raise ConfigError(f"which kernel? the PTX has {names}")
    if name is not None and name not in module.kernels:
        raise ConfigError(f"the PTX has no kernel '{name}', it has {names}")
    return module.kernels[name] if name else next(iter(module.kernels.values()))


def _threads(kernel: PtxKernel, given: int | None) -> int:
    dims = kernel.required_threads or kernel.max_threads
    if given == 0 or (dims is not None and dims[1:] != (1, 1)):
        raise Outside("a block of more than one dimension", kernel.line)
    if given is None and dims is None:
        raise ConfigError(
            f"{kernel.name} does not say how many threads a block has: give --threads"
        )
    if given is not None and kernel.required_threads:
        if given != math.prod(kernel.required_threads):
            raise ConfigError(
                f"{kernel.name} has blocks of {math.prod(kernel.required_threads)} "
                f"threads, got {given}"
            )
    return given or math.prod(dims or (1,))


def shared_layout(
    module: Module, kernel: PtxKernel, dynamic: int | None
) -> tuple[dict[str, int], int]:
    """Where each shared variable begins, in bytes, and how many bytes there are.

    Variables come in the order of the text, those of the module first, and dynamic
    memory after all others.
    """
    every = (*module.variables.values(), *kernel.variables.values())
    shared = [v for v in every if v.space == "shared"]
    places, top = {}, 0
    for one in sorted(shared, key=lambda v: not v.size):
        top = -(-top // one.align) * one.align
        places[one.name] = top
        top += one.size
        if not one.size and dynamic is None:
            raise Outside(f"{one.name} is dynamic shared memory: say how many bytes")
    return places, top + (dynamic or 0 if any(not v.size for v in shared) else 0)


def check_parameters(kernel: PtxKernel, given: Iterable[str]) -> None:
    """ConfigError for a name that is none of its parameters, or of an axis."""
    names = [one.name for one in kernel.parameters]
    for name in given:
        if name not in (*names, *BLOCK_NUMBERS):
            raise ConfigError(
                f"{kernel.name} has no parameter '{name}', it has {', '.join(names)}"
            )


def _listed(given: Mapping[str, Requirement]) -> list[dict[str, Any]]:
    return [
        {"parameter": name, **vars(requirement)}
        for name, requirement in sorted(given.items())
    ]
