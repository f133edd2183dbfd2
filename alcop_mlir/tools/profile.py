"""The emulator's counters as a table: what `alcop-run --profile` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from alcop_mlir.tools.command_line import Rows, aligned, print_table

if TYPE_CHECKING:
    from alcop_mlir.runtime.emulator import Counters, Result
    from alcop_mlir.runtime.emulator.observers.counters import (
        GroupCounters,
        LineCounters,
    )

_WORST_LINES = 5
_SHOWN_TEXT = 48  # characters of an instruction


def print_profile(name: str, result: Result) -> None:
    """Print the counters of one launch, if it has any."""
    if result.counters is not None:
        print_table(f"profile of {name}", profile_rows(result.counters))


def profile_rows(counters: Counters) -> Rows:
    """Instructions by class, memory traffic, and commit groups; totals of the grid."""
    yield "executed", _instructions(counters)
    wavefronts, conflicts = counters.shared_wavefronts, counters.bank_conflicts
    yield (
        "shared",
        [
            f"{wavefronts:,} wavefronts, {conflicts:,} bank conflicts",
            *_worst(counters.lines, "shared_wavefronts", "conflicts"),
        ],
    )
    sectors, ideal = counters.global_sectors, counters.global_sectors_ideal
    yield (
        "global",
        [
            f"{sectors:,} sectors of 32 bytes, {ideal:,} would be ideal",
            *_worst(counters.lines, "global_sectors", "sectors too many"),
        ],
    )
    yield "cp.async", [f"{_bytes(counters.copy_bytes)} copied"]
    yield "groups", _groups(counters.groups)
    if counters.rings:
        yield "bulk", _bulk_copies(counters)
        yield "mbarriers", _rings(counters)
    if counters.multiply_groups:
        yield "wgmma", _groups(counters.multiply_groups)


def _instructions(counters: Counters) -> list[str]:
    """The most frequent class first."""
    total = sum(counters.instructions.values())
    parts = sorted(counters.instructions.items(), key=lambda item: -item[1])
    rows = [["all", f"{total:,}", "warp instructions"]]
    rows += [[name, f"{n:,}", f"{n / total:.1%}"] for name, n in parts]
    return aligned(rows, right=(1,))


def _worst(lines: Sequence[LineCounters], counter: str, what: str) -> list[str]:
    """The lines whose counter is the most above its ideal."""
    above = ((getattr(e, counter) - getattr(e, f"{counter}_ideal"), e) for e in lines)
    bad = sorted((entry for entry in above if entry[0]), key=lambda e: -e[0])
    rows = [
        [f"line {line.line}", f"{count:,}", what, _short(line.text)]
        for count, line in bad[:_WORST_LINES]
    ]
    shown = aligned(rows, right=(1,))
    if len(bad) > _WORST_LINES:
        shown.append(f"and {len(bad) - _WORST_LINES} lines with fewer")
    return shown


def _bulk_copies(counters: Counters) -> list[str]:
    moved = (counters.loaded_bytes, counters.stored_bytes, counters.in_flight)
    loaded, stored, flying = map(_bytes, moved)
    return [
        f"{loaded} to shared memory, {stored} from it",
        f"{flying} on their way to one block at most",
    ]


def _rings(counters: Counters) -> list[str]:
    """What ends at each mbarrier, and how often warps wait for it."""
    title = ["at byte", "copies", "bytes", "waits of warps"]
    rows = [
        [
            str(ring.byte),
            f"{ring.copies:,}",
            _bytes(ring.copied_bytes),
            f"{ring.waits:,}",
        ]
        for ring in counters.rings
    ]
    return aligned([title, *rows], right=(0, 1, 2, 3))


def _groups(groups: Sequence[GroupCounters]) -> list[str]:
    """How far before its wait each commit was issued."""
    if not groups:
        return ["none"]
    title = ["commit line", "wait line", "groups", "instructions between"]
    rows = [
        [
            str(group.commit_line),
            str(group.wait_line),
            f"{group.groups:,}",
            _spread(group.instructions_ahead),
            _spread(group.multiplies_ahead),
        ]
        for group in groups
    ]
    return aligned([[*title, "mma between"], *rows], right=(0, 1, 2))


def _spread(values: tuple[int, float, int]) -> str:
    """Mean, and the range if there is one."""
    least, mean, most = values
    return str(least) if least == most else f"{mean:.1f} ({least} to {most})"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 3] + "..."


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"
