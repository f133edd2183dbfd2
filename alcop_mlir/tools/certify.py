"""alcop-certify: proves that kernels use memory right, at all trip counts.

Exit status 0 where all are proven, 2 where one is not, 3 where one is outside of the
model and none is worse, 4 where one is proven in part: that loops end, that loads read
the tile of their turn, that accesses to global memory are inside of arrays, or that
results are placed, is not shown; 1 with one line `error: ...` on stderr.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from alcop_mlir import codec, files, limits
from alcop_mlir.errors import CertificateError, ConfigError, EmulationError
from alcop_mlir.tools import command_line, promises
from alcop_mlir.tools.command_line import Parser, Rows, count, positive

if TYPE_CHECKING:
    from alcop_mlir.certificate.api import Report
    from alcop_mlir.certificate.preconditions import Preconditions
    from alcop_mlir.certificate.state import Requirement
    from alcop_mlir.certificate.superfluous import Superfluous

TOOL = "alcop-certify"
_SECONDS = 120
_STATUS = {"proven": 0, "not proven": 2, "outside": 3}
_IN_PART = 4
_WORST_LAST = (0, _IN_PART, 3, 2)
_REQUIREMENT = re.compile(r"([\w$.%]+?)=(-?\d+)\.\.(-?\d+)(?:%(\d+))?", re.A)
_MOST_DIGITS = 20
# Options that a bundle's manifest answers.
_FOR_PTX = (
    *("kernel", "threads", "shared", "require", "array", "grid", "check"),
    *("computes", "superfluous", "same_stores"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    return command_line.run_command(lambda: _run(parser().parse_args(arguments)))


def parser() -> Parser:
    """All options."""
    parser = Parser(TOOL, "Prove that kernels use memory right.")
    add = parser.add_argument
    add("file", help="PTX, or a bundle of alcop-compile")
    about = "of a .ptx file with several: which one; default all"
    add("--kernel", metavar="NAME", help=about)
    about = "of a .ptx file: threads of a block, where the PTX does not say"
    add("--threads", type=positive, metavar="N", help=about)
    about = "of a .ptx file: bytes of dynamic shared memory"
    add("--shared", type=count, metavar="BYTES", help=about)
    about = "of a .ptx file: what callers promise of an integer parameter; %%N: it is "
    about += "a multiple of N; one that is a number, as n=64..64, is known wherever it "
    about += "is used; may be given several times"
    add(
        "--require",
        action="append",
        type=_requirement,
        metavar="NAME=LOW..HIGH[%N]",
        help=about,
    )
    about = "of a .ptx file: how many bytes a pointer points to, a sum of "
    about += "products of numbers and parameters; may be given several times"
    add(
        "--array",
        action="append",
        type=promises.array,
        metavar="PARAM=BYTES",
        help=about,
    )
    about = "of a .ptx file: the numbers of blocks, products of numbers, parameters "
    about += "and PARAM/NUMBER, rounded up; default any"
    add("--grid", type=promises.grid, metavar="X,Y,Z", help=about)
    about = "of a .ptx file: what it computes, with extents and bytes of elements, as "
    about += "C[64m,64n]:4 = A[64m,32k]:2 * B[32k,64n]:2, by names of parameters, or "
    about += "+= where it is added to what C has; --grid has to be numbers"
    add("--computes", type=promises.computed, metavar="TEXT", help=about)
    about = "of a .ptx file: take it that threads that store to one place of shared "
    about += "memory at once store the same"
    add("--same-stores", action="store_true", help=about)
    about = f"at most so many for each kernel; default {_SECONDS}"
    add("--seconds", type=positive, default=_SECONDS, metavar="N", help=about)
    add("--json", action="store_true", help="print the verdicts as JSON")
    about = "where to write the certificates of what is proven"
    add("-o", dest="output", metavar="FILE.json", help=about)
    about = "list waits, barriers and commits without which it is proven all the same"
    add("--superfluous", action="store_true", help=about)
    about = "prove nothing: check these certificates of a .ptx file"
    add("--check", metavar="FILE.json", help=about)
    return parser


def _requirement(text: str) -> tuple[str, int, int, int]:
    found = _REQUIREMENT.fullmatch(text)
    if found is None or any(len(g or "") > _MOST_DIGITS for g in found.groups()[1:]):
        message = f"expected NAME=LOW..HIGH or NAME=LOW..HIGH%N, got '{text[:80]}'"
        raise argparse.ArgumentTypeError(message)
    name, low, high, by = found.groups()
    if int(low) > int(high) or by == "0":
        raise argparse.ArgumentTypeError(f"no number is in '{text}'")
    return name, int(low), int(high), int(by or 1)


def _run(given: Any) -> int:
    from alcop_mlir.runtime.bundle import is_bundle

    if is_bundle(given.file):
        for flag in command_line.flags_given(given, _FOR_PTX):
            raise ConfigError(f"{flag} is for .ptx files, a bundle says it itself")
        from alcop_mlir.compilation.certification import certify_bundle
        from alcop_mlir.runtime.bundle import load

        reports, found = certify_bundle(load(given.file), given.seconds), None
    elif given.check is not None:
        return _check(given)
    else:
        reports, found = _of_ptx(given)
    if given.output is not None:
        from alcop_mlir.certificate.certificate import stored

        made = [r.certificate for r in reports if r.certificate is not None]
        files.write_whole(given.output, stored(made))
    _show(given, reports, found)
    found = [_IN_PART if r.missing else _STATUS[r.status] for r in reports]
    return max(found, default=0, key=_WORST_LAST.index)


def _check(given: Any) -> int:
    """Check stored certificates; the first that does not hold is an error."""
    from alcop_mlir.checker.check import check

    text = _text(given.file)
    value = codec.parse(files.read(given.check, limits.JSON), limits.JSON.most)
    if not isinstance(value, list) or not value:
        raise ConfigError(f"'{given.check}' has no list of certificates")
    for one in value:
        start = time.perf_counter()
        check(text, one, shares_stores=given.same_stores)
        found = _report_of(one, time.perf_counter() - start)
        verdict = ("verdict", [f"certificate holds: {found.verdict}"])
        command_line.print_table(found.entry, [verdict, *[*_rows(found)][1:]])
    return 0


def _report_of(certificate: dict[str, Any], seconds: float) -> Report:
    """What a certificate that holds says."""
    from alcop_mlir.certificate.api import ASSUMPTIONS, Report

    bounds = certificate["bounds"]
    return Report(
        certificate["entry"],
        "proven",
        seconds,
        is_fresh=certificate["fresh"],
        is_ending=certificate["ends"] or bool(bounds and bounds["by_numbers"]),
        is_steady=certificate["steady"] is not None,
        is_bounded=bounds is not None,
        is_placed=certificate["placed"] is not None,
        misplaced="the certificate says nothing of what is computed",
        assumptions=(*ASSUMPTIONS, *certificate["assumes"]),
    )


def _of_ptx(given: Any) -> tuple[list[Report], list[list[Superfluous]] | None]:
    """Verdicts, and what is superfluous, if that is asked for."""
    from alcop_mlir.certificate.state import Requirement
    from alcop_mlir.certificate.superfluous import superfluous
    from alcop_mlir.compilation.certification import certified
    from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx

    text = _text(given.file)
    required: dict[str, Requirement] = {
        name: Requirement(low, high, by) for name, low, high, by in given.require or ()
    }
    try:
        names = [given.kernel] if given.kernel else list(parse_ptx(text).kernels)
        if not names:
            raise ConfigError(f"not proven: '{given.file}' has no kernel")
        options = (given.threads, given.shared, required, given.seconds)
        promised = _promised(given, required)
        told = promised, _stated(given)
        same = given.same_stores
        reports = [certified(text, name, *options, *told, same) for name in names]
        if not given.superfluous:
            return reports, None
        return reports, [superfluous(text, name, *options, same) for name in names]
    except EmulationError as error:
        what = " ".join(str(error).split())  # one line
        raise ConfigError(f"not proven: {what}") from None


def _promised(given: Any, sizes: dict[str, Requirement]) -> Preconditions:
    from alcop_mlir.certificate.api import BLOCK_NUMBERS
    from alcop_mlir.certificate.preconditions import Array, Preconditions

    return Preconditions(
        arrays={name: Array(bytes_) for name, bytes_ in given.array or ()},
        sizes={n: one for n, one in sizes.items() if n not in BLOCK_NUMBERS},
        grid=dict(zip(BLOCK_NUMBERS, given.grid or (), strict=False)),
    ).with_numbers()


def _stated(given: Any) -> str:
    """What results are, as JSON text; nothing where nobody says so."""
    if given.computes is None:
        return ""
    from alcop_mlir.checker.form.statement import read_statement

    counts = [one for axis in given.grid or () for one in axis]
    if len(counts) != 3 or any(names for ((_, names),), _ in counts):
        raise ConfigError("--computes needs --grid X,Y,Z, in numbers")
    grid = [-(-number // by) for ((number, _),), by in counts]
    found = {**given.computes, "grid": grid}
    try:
        read_statement(found)
    except (CertificateError, ValueError, KeyError) as error:
        raise ConfigError(f"--computes: {error}") from None
    return json.dumps(found, sort_keys=True)


def _text(file: str) -> str:
    try:
        return files.read(file, limits.PTX).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"not proven: '{file}' is no UTF-8 text") from None


def _show(
    given: Any,
    reports: Sequence[Report],
    superfluous: Sequence[Sequence[Superfluous]] | None,
) -> None:
    found = superfluous or [[]] * len(reports)
    if given.json:
        values = [report.to_json() for report in reports]
        if superfluous is not None:
            values = [
                {**value, "superfluous": [vars(one) for one in listed]}
                for value, listed in zip(values, found, strict=True)
            ]
        print(json.dumps(values, indent=1))
        return
    for report, listed in zip(reports, found, strict=True):
        rows = list(_rows(report))
        if superfluous is not None:
            rows.append(("not needed", list(map(str, listed)) or ["none"]))
        command_line.print_table(report.entry, rows)


def _rows(report: Report) -> Rows:
    yield "verdict", [report.verdict if report.missing else report.status]
    if report.finding is not None:
        yield "alarm", [str(report.finding)]
        yield "at", [report.finding.text]
    if report.why:
        line = "" if report.line is None else f"line {report.line}: "
        yield "why", [f"{line}{report.why}"]
    if report.status == "proven":
        fresh = "yes" if report.is_fresh else "not shown"
        yield "fresh", [f"{fresh}: each load reads copies of one age, in groups"]
        ends = "yes" if report.is_ending else "not shown"
        yield "ends", [f"{ends}: each loop has a bound for its turns"]
        steady = "yes" if report.is_steady else "not shown"
        yield "steady", [f"{steady}: each load reads the tile of its turn"]
        if report.is_bounded or not report.loose:
            shown = "yes" if report.is_bounded else "not shown"
            bounded = f"{shown}: each access to global memory is inside of an array"
        else:
            bounded = f"not shown: {report.loose}"
        yield "bounded", [bounded]
        placed = (
            "yes: results are made of the right elements, and stored where they belong"
        )
        if not report.is_placed:
            placed = f"not shown: {report.misplaced}"
        yield "placed", [placed]
        yield "assumed", list(report.assumptions)
    yield "time", [command_line.seconds(report.seconds)]


if __name__ == "__main__":
    sys.exit(main())
