"""Tries cases of the fuzz test: is the pipelined kernel right, what was pipelined."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from differential import compile_both, run
from drawing import Case, draw_case
from shrinking import shrunk
from text_kernel import kernel_text

from alcop_mlir.errors import AlcopError

UNPIPELINED = "unpipelined:"  # begins what is wrong with a kernel as it is
PIPELINED = ", pipelined"  # ends what is counted where something was
PLAIN = ("late", "lockstep")  # how a kernel runs as it is


@dataclass
class Tally:
    """What some cases did.

    seen:    cases, and those of them in which something was pipelined: at a level; of
             kernels of one buffer also forms, and those pipelined: "copy async", and
             "copy async, pipelined"
    seconds: of the CPU
    wrong:   the first failure, shrunk, as text
    """

    seen: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    wrong: str = ""

    def add(self, other: Tally) -> None:
        """Count the other's cases too."""
        self.seen.update(other.seen)
        self.seconds += other.seconds
        self.wrong = self.wrong or other.wrong

    def counting(self, what: str, times: int = 1) -> Tally:
        """Itself, `what` counted."""
        self.seen[what] += times
        return self

    def lines(self) -> list[str]:
        """As a summary."""
        seen, cases = self.seen, max(1, self.seen["cases"])
        lines = [
            f"{seen['cases']} programs, {self.seconds / cases:.3f} CPU seconds each"
        ]
        lines += [
            f"  pipelined, {what}: {seen[what] / cases:.1%}"
            for what in ("any", "shared", "register")
        ]
        lines += [
            f"  {form:<22} {count:>6} {seen[form + PIPELINED] / count:>7.1%}"
            for form, count in sorted(seen.items())
            if " " in form and not form.endswith(PIPELINED)
        ]
        return lines


def try_cases(seeds: Iterable[int]) -> Tally:
    """Try the cases of those numbers, up to the first that fails."""
    tally = Tally()
    started = time.process_time()
    for seed in seeds:
        case = draw_case(seed)
        levels, wrong = try_case(case)
        tally.seen.update(["cases", *levels, *(["any"] if levels else [])])
        tally.seen.update(_forms(case, bool(levels)))
        if wrong:
            simple = shrunk(case, partial(_fails_alike, wrong))
            _, why = try_case(simple)
            tally.wrong = f"seed {seed}: {why}\n{simple.text()}"
            break
    tally.seconds = time.process_time() - started
    return tally


def _forms(case: Case, pipelined: bool) -> Iterator[str]:
    """The forms of a kernel of one buffer, so that it is known what was pipelined."""
    loops = case.kernel.loops
    if len(loops) == 1 and len(loops[0].buffers) == 1:
        for form in case.kernel.forms():
            yield form
            if pipelined:
                yield form + PIPELINED


def try_case(case: Case) -> tuple[frozenset[str], str]:
    """The levels that were pipelined; what is wrong, "" if nothing."""
    kernel = case.kernel
    try:
        both = compile_both(kernel_text(kernel), case.settings)
    except AlcopError as error:
        return frozenset(), str(error)
    levels = both.pipelined.levels
    is_same = both.pipelined.ptx is both.plain.ptx
    try:
        expected, hazards = run(kernel, both.plain, case.mode if is_same else PLAIN)
    except AlcopError as error:
        return levels, f"{UNPIPELINED} {error}"
    if hazards:
        return levels, f"{UNPIPELINED} {hazards[0]}"
    if is_same:
        why = "is reported, but nothing was changed" if levels else ""
        return levels, why
    if both.wrong:
        return levels, f"structural check: {both.wrong[0]}"
    try:
        results, hazards = run(kernel, both.pipelined, case.mode)
    except AlcopError as error:
        return levels, str(error)
    if hazards:
        return levels, str(hazards[0])
    names = [array.name for array in kernel.arrays()]
    wrong = [
        name
        for name, one, other in zip(names, expected, results, strict=True)
        if _bits(one) != _bits(other)
    ]
    return levels, f"other bits in {', '.join(wrong)}" if wrong else ""


def _bits(array: np.ndarray) -> bytes:
    """Alike for all NaN: which of two an addition gives depends on their order."""
    if array.dtype.kind != "f":
        return array.tobytes()
    return np.where(np.isnan(array), array.dtype.type(np.nan), array).tobytes()


def _fails_alike(wrong: str, case: Case) -> bool:
    """Whether a case fails, and as it is just if the one that is `wrong` does so."""
    _, found = try_case(case)
    both = [why.startswith(UNPIPELINED) for why in (found, wrong)]
    return bool(found) and both[0] == both[1]
