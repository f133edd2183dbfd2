"""Records: many writers, torn lines, other schemas, full disks; nothing is lost."""

from __future__ import annotations

import errno
import json
import math
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tuning_cases import (
    CUDA,
    PROBLEM,
    SIMULATED,
    record,
    some_candidates,
    write_records,
)

from alcop_mlir.errors import ConfigError
from alcop_mlir.tuning import records
from alcop_mlir.tuning.records import Log

SCHEDULES = some_candidates(12).schedules


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


@given(st.floats(1e-9, 10) | st.none(), st.integers(0, 11), st.sampled_from((0, 1)))
def test_records_come_back(seconds, number, which) -> None:
    one = record(SCHEDULES[number], seconds, (SIMULATED, CUDA)[which])
    assert records.from_json(json.loads(json.dumps(records.to_json(one)))) == one


def test_no_file_is_no_records(path: Path) -> None:
    assert records.read(path) == Log()


def test_the_line_says_all_that_the_format_names(path: Path) -> None:
    records.append(path, [record(SCHEDULES[0])])
    line = json.loads(path.read_text())
    assert set(line) == set(
        "schema time target op shape dtypes layout schedule compiler device ok seconds "
        "spread repeats".split()
    )
    assert set(line["target"]) == {"name", "device", "driver"}
    assert set(line["compiler"]) == {"version", "hash"}


def _write(path: str, number: int) -> None:
    for _ in range(25):
        records.append(Path(path), [record(SCHEDULES[number])] * 2)


def test_several_processes_write_whole_lines(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_write, args=(str(path), number)) for number in range(3)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    log = records.read(path)
    assert log.notes == ()
    counts = [
        sum(r.schedule == SCHEDULES[number] for r in log.records) for number in range(3)
    ]
    assert counts == [50, 50, 50]


@settings(max_examples=30)
@given(st.integers(1, 300))
def test_a_torn_last_line_is_reported_and_costs_nothing_else(
    tmp_path_factory, cut
) -> None:
    path = tmp_path_factory.mktemp("torn") / "records.jsonl"
    before = write_records(path, 3)
    whole = path.read_bytes()
    line = (json.dumps(records.to_json(before[0])) + "\n").encode()
    path.write_bytes(whole + line[: min(cut, len(line) - 2)])
    log = records.read(path)
    assert list(log.records) == before
    (note,) = log.notes
    assert ":4: line skipped: no JSON: " in note
    # The next record is appended on a line of its own.
    records.append(path, [before[1]])
    assert list(records.read(path).records) == [*before, before[1]]
    assert len(records.read(path).notes) == 1


def test_a_last_line_without_its_newline_counts(path: Path) -> None:
    before = write_records(path, 2)
    path.write_bytes(path.read_bytes()[:-1])
    assert list(records.read(path).records) == before
    records.append(path, before[:1])
    assert len(records.read(path).records) == 3


def test_another_schema_is_kept_and_reported(path: Path) -> None:
    before = write_records(path, 2)
    other = json.dumps({**records.to_json(before[0]), "schema": 2, "new": 1}) + "\n"
    path.write_text(path.read_text() + other + other)
    log = records.read(path)
    assert list(log.records) == before
    assert log.notes == (
        f"{path}: 2 record(s) of schema 2 skipped, this version reads 1",
    )
    records.append(path, before[:1])
    assert path.read_text().count('"schema": 2') == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device": "tpu"}, 'device: expected one of cuda, simulated, got "tpu"'),
        ({"seconds": -1}, "seconds: expected a number above 0, got -1"),
        ({"seconds": 0}, "seconds: expected a number above 0, got 0"),
        ({"seconds": "1"}, 'seconds: expected a number above 0 or null, got "1"'),
        ({"seconds": None}, "neither 'ok' with 'seconds' nor an 'error'"),
        ({"seconds": []}, "seconds: expected a number above 0 or null, got []"),
        ({"seconds": True}, "seconds: expected a number above 0 or null, got true"),
        ({"seconds": math.nan}, "no JSON: NaN is no number of it"),
        ({"seconds": math.inf}, "no JSON: Infinity is no number of it"),
        ({"spread": -math.inf}, "no JSON: -Infinity is no number of it"),
        ({"spread": "0"}, 'spread: expected a number of 0 or more or null, got "0"'),
        ({"spread": {}}, "spread: expected a number of 0 or more or null, got {}"),
        ({"repeats": 0}, "repeats: expected an integer of 1 or more, got 0"),
        (
            {"repeats": 1.5},
            "repeats: expected an integer of 1 or more or null, got 1.5",
        ),
        (
            {"repeats": True},
            "repeats: expected an integer of 1 or more or null, got true",
        ),
        (
            {"repeats": 10**400},
            "repeats: expected an integer of 1 or more, got an integer of 1329 bits",
        ),
        (
            {"seconds": 10**400},
            "seconds: expected a number above 0, got an integer of 1329 bits",
        ),
        ({"ok": 1}, "ok: expected true or false, got 1"),
        ({"time": None}, "time: expected text, got null"),
        ({"target": {"name": 80}}, "target.name: expected text, got 80"),
        ({"compiler": []}, "compiler: expected an object, got []"),
        ({"layout": "\ud800"}, 'layout: expected text, got "\\ud800"'),
        ({"schema": True}, "schema: expected an integer, got true"),
        ({"ok": False}, "neither 'ok' with 'seconds' nor an 'error'"),
        (
            {"schedule": {"block": 3}},
            "schedule.block: expected a list of 3, each an "
            "integer from 1 to 65536, got 3",
        ),
        ({"shape": {}}, "shape.M: missing"),
    ],
)
def test_a_wrong_line_is_skipped_with_its_reason(path: Path, change, message) -> None:
    (good,) = write_records(path, 1)
    wrong = json.dumps({**records.to_json(good), **change}) + "\n"
    path.write_text(wrong + path.read_text())
    log = records.read(path)
    assert list(log.records) == [good]
    assert log.notes == (f"{path}:1: line skipped: {message}",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[" * 100_000, "no JSON: nested too deep"),
        (
            b'{"schema": 1, "seconds": ' + b"[" * 900 + b"]" * 900 + b"}",
            "got a list of 1",
        ),
        (b'{"seconds": ' + b"9" * 5000 + b"}", "no JSON: a number has too many digits"),
        (b'{"error": "' + b"x" * (1 << 20) + b'"}', "expected 1048576 at most"),
        (b'{"error": "\xff"}', "no UTF-8 text"),
        (b"null", "expected an object, got null"),
        (b"{}", "schema: missing"),
    ],
)
def test_a_damaged_line_costs_only_itself(path: Path, line: bytes, message) -> None:
    before = write_records(path, 2)
    path.write_bytes(line + b"\n" + path.read_bytes())
    log = records.read(path)
    assert list(log.records) == before
    (note,) = log.notes
    assert note.startswith(f"{path}:1: line skipped: ")
    assert message in note
    assert len(note) < 200 + len(str(path))


def test_a_full_disk_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = write_records(path, 3)
    held = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        ConfigError, match="No space left on device; what it holds is not"
    ):
        records.append(path, before)
    assert path.read_bytes() == held


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ConfigError, match=r"cannot record to .*(Not a directory|File exists)"
    ):
        records.append(tmp_path / "file" / "records.jsonl", [record(SCHEDULES[0])])
    with pytest.raises(ConfigError, match=r"cannot read .*Is a directory"):
        records.read(tmp_path)


def test_what_is_known_of_a_setting() -> None:
    one, two, three = SCHEDULES[:3]
    log = [
        record(one, 3e-5),
        record(one, 2e-5),
        record(one, None),
        record(two, None),
        record(three, 1e-5, CUDA),
        record(three, 1e-5, replace(SIMULATED, compiler_hash="other")),
    ]
    assert records.measured(log, PROBLEM, SIMULATED) == {one: 2e-5, two: None}


def test_devices_are_not_mixed_when_ranking() -> None:
    one, two = SCHEDULES[:2]
    log = [record(one, 1e-5), record(two, 2e-5, CUDA), record(one, 3e-5, CUDA)]
    ranked = records.ranked(log, PROBLEM, "sm_80", "cuda")
    assert [r.schedule for r in ranked] == [two, one]
