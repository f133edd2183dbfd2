"""The emulator's counters as a table: what `alcop-run --profile` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from alcop_mlir.tools.command_line import Rows, aligned, print_table

if TYPE_CHECKING:
    from alcop_mlir.runtime.emulator import Counters, Result
    from alcop_mlir.runtime.emulator.observers.counters import LineCounters

_WORST_LINES = 5
_SHOWN_TEXT = 48  # characters of an instruction


def print_profile(name: str, result: Result) -> None:
    """Print the counters of one launch, if it has any."""
    if result.counters is not None:
        print_table(f"profile of {name}", profile_rows(result.counters))


def profile_rows(counters: Counters) -> Rows:
    """Instructions by class, memory traffic, and commit groups; totals of the grid."""
    yield "executed", _instructions(counters)
    yield "shared", _shared(counters)
    yield "global", _global(counters)
    yield "cp.async", [f"{_bytes(counters.copy_bytes)} copied"]
    yield "groups", _groups(counters)


def _instructions(counters: Counters) -> list[str]:
    """The most frequent class first."""
    total = sum(counters.instructions.values())
    parts = sorted(counters.instructions.items(), key=lambda item: -item[1])
    rows = [["all", f"{total:,}", "warp instructions"]]
    rows += [[name, f"{n:,}", f"{n / total:.1%}"] for name, n in parts]
    return _table(rows, right=(1,))


def _shared(counters: Counters) -> list[str]:
    worst = [
        (line.shared_wavefronts - line.shared_wavefronts_ideal, line)
        for line in counters.lines
    ]
    total = (
        f"{counters.shared_wavefronts:,} wavefronts, "
        f"{counters.bank_conflicts:,} bank conflicts"
    )
    return [total, *_worst(worst, "conflicts")]


def _global(counters: Counters) -> list[str]:
    worst = [
        (line.global_sectors - line.global_sectors_ideal, line)
        for line in counters.lines
    ]
    total = (
        f"{counters.global_sectors:,} sectors of 32 bytes, "
        f"{counters.global_sectors_ideal:,} would be ideal"
    )
    return [total, *_worst(worst, "sectors too many")]


def _worst(lines: Sequence[tuple[int, LineCounters]], what: str) -> list[str]:
    """The lines with the most of something that should be 0."""
    bad = sorted((entry for entry in lines if entry[0]), key=lambda e: -e[0])
    rows = [
        [f"line {line.line}", f"{count:,}", what, _short(line.text)]
        for count, line in bad[:_WORST_LINES]
    ]
    shown = _table(rows, right=(1,))
    if len(bad) > _WORST_LINES:
        shown.append(f"and {len(bad) - _WORST_LINES} lines with fewer")
    return shown


def _groups(counters: Counters) -> list[str]:
    """How far before its wait each commit was issued."""
    if not counters.groups:
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
        for group in counters.groups
    ]
    return _table([[*title, "mma between"], *rows], right=(0, 1, 2))


def _spread(values: tuple[int, float, int]) -> str:
    """Mean, and the range if there is one."""
    least, mean, most = values
    return str(least) if least == most else f"{mean:.1f} ({least} to {most})"


def _table(rows: Sequence[Sequence[str]], right: Sequence[int]) -> list[str]:
    """`aligned`, with the numbers in the columns `right` at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return aligned(
        [
            [cell.rjust(widths[n]) if n in right else cell for n, cell in enumerate(r)]
            for r in rows
        ]
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 3] + "..."


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"
