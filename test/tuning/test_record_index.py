"""Records by an index: what is found is what a reader of the whole file finds."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tuning_cases import CUDA, PROBLEM, SIMULATED, TARGET, record, some_candidates

from alcop_mlir import files
from alcop_mlir.tuning import gpus, models, records, training
from alcop_mlir.tuning import record_book as book
from alcop_mlir.tuning.counted import Counted, count
from alcop_mlir.tuning.features import NAMES
from alcop_mlir.tuning.learned import Forest
from alcop_mlir.tuning.open_problem import OpenProblem
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.selection import Chooser

GPU = TARGET.device
PROBLEMS = [
    PROBLEM,
    Problem(256, 512, 512),
    Problem(512, 512, 512, 2, "batch_matmul"),
    Problem(512, 512, 512, dtypes=("i8", "i8", "i32", "i32")),
]
SETTINGS = [
    *[CUDA] * 4,
    dataclasses.replace(CUDA, gpu="NVIDIA A30"),
    dataclasses.replace(CUDA, gpu=""),
    dataclasses.replace(CUDA, target="sm_90"),
    SIMULATED,
]
SCHEDULES = some_candidates(20).schedules
# Lines that are no records, or not of ours.
DAMAGED = [b'{"schema":1}', b'{"schema":7}', b"{", b"\xff", b'{"schema":"x"}', b" "]


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's records; small files have an index too, that counts at once."""
    monkeypatch.setattr(book, "LEAST_BYTES", 1)
    monkeypatch.setattr(book, "_SETTLED", 0)
    models.records_path().parent.mkdir(parents=True)
    return models.records_path()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines that are decoded from now on."""
    found: list[bytes] = []
    read_line = records.read_line

    def counting(text: bytes, *where: int) -> records.Line:
        found.append(text)
        return read_line(text, *where)

    monkeypatch.setattr(records, "read_line", counting)
    return found


def some_records(draw: random.Random, number: int) -> list[Record]:
    """Of all kinds, a few of them failed or impossible."""
    return [
        record(
            draw.choice(SCHEDULES),
            draw.choice([None, 1e-9, *(draw.uniform(1e-5, 1e-4) for _ in range(8))]),
            draw.choice(SETTINGS),
            draw.choice(PROBLEMS),
        )
        for _ in range(number)
    ]


class Plain:
    """What counts by all records of the file, each looked at."""

    def __init__(self, path: Path):
        log = records.read(path)
        mine = records.timed(log.records, "cuda", TARGET.name)
        others = Counter(r.setting.gpu for r in mine if r.setting.gpu != GPU)
        mine = [r for r in mine if r.setting.gpu == GPU]
        self.left_out = tuple(
            f"{number} record(s) of {gpu or 'a GPU without a name'} do not count, only "
            f"those of {GPU}"
            for gpu, number in others.items()
        )
        self.records = tuple(r for r in mine if possible(r))
        wrong = [r for r in mine if not possible(r)]
        self.notes = log.notes
        if wrong:
            self.notes += (
                f"{len(wrong)} recorded time(s) are impossible and not used: "
                f"{wrong[0].seconds:.3g} s for {wrong[0].problem}, at {wrong[0].time}",
            )


def possible(record: Record) -> bool:
    least = gpus.least_seconds(record.problem, TARGET, GPU)
    return (record.seconds or 0.0) >= least


def found(path: Path, anew: bool = False) -> Counted:
    shipped = book.of_data(b"", "none of a GPU")
    return count([book.consult(path, anew), shipped], TARGET, "cuda", lambda: GPU)


def check(path: Path) -> None:
    """By an index or without one: the same."""
    plain, by_index = Plain(path), found(path)
    assert by_index.notes == plain.notes
    assert by_index.left_out == plain.left_out
    assert len(by_index) == len(plain.records)
    for problem in PROBLEMS:
        mine = tuple(r for r in plain.records if r.problem == problem)
        assert by_index.of(problem) == mine
    assert by_index.records == plain.records
    assert by_index.key == found(path, anew=True).key


def change(path: Path, draw: random.Random) -> None:
    """What may happen to a file of records, and to its index."""
    data = path.read_bytes()
    kind = draw.randrange(9)
    if kind < 4:
        records.append(path, some_records(draw, draw.randrange(1, 6)))
    elif kind == 4:
        ends = b"\n" if draw.random() < 0.5 else b""
        path.write_bytes(data + draw.choice([*DAMAGED, data[:200]]) + ends)
    elif kind == 5:  # a part of it alone, in the same file
        path.write_bytes(data[: draw.randrange(len(data) + 1)])
    elif kind == 6:  # another one instead
        files.replace(path, records.lines(some_records(draw, 10)))
    elif kind == 7:  # edited, of the same size
        path.write_bytes(data.replace(b'"driver":"1.0"', b'"driver":"2.0"', 1))
    else:
        damage(draw)


def damage(draw: random.Random) -> None:
    for kept in models.records_path().parent.glob("*.index"):
        content = bytearray(kept.read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        kept.write_bytes(draw.choice([content, content[:50], b"", kept.read_bytes()]))


@pytest.mark.parametrize("seed", range(5))
def test_an_index_changes_nothing(path: Path, seed: int) -> None:
    draw = random.Random(seed)
    path.write_bytes(records.lines(some_records(draw, 12)))
    for _ in range(15):
        check(path)
        change(path, draw)


@pytest.mark.parametrize("which", range(8))
def test_a_damaged_index_is_none(path: Path, which: int) -> None:
    path.write_bytes(records.lines(some_records(random.Random(0), 20)))
    check(path)
    (kept,) = path.parent.glob("*.index")
    content = bytearray(kept.read_bytes())
    content[which * len(content) // 8] ^= 4
    kept.write_bytes(content)
    check(path)


def test_only_the_lines_of_a_problem_are_decoded(
    path: Path, decoded: list[bytes]
) -> None:
    made = [
        record(schedule, 1e-5 + 1e-7 * number, CUDA, problem)
        for problem in PROBLEMS
        for number, schedule in enumerate(SCHEDULES)
    ]
    path.write_bytes(records.lines(made))
    first = Chooser(TARGET).choose(PROBLEM)
    assert len(decoded) == len(made)
    decoded.clear()
    assert Chooser(TARGET).choose(PROBLEM) == first
    assert [*map(bytes.decode, decoded)] == [
        records.lines([one]).decode().strip() for one in made if one.problem == PROBLEM
    ]
    records.append(path, [record(SCHEDULES[0], 1e-5, CUDA, PROBLEMS[1])] * 3)
    decoded.clear()
    assert Chooser(TARGET).choose(PROBLEM) == first
    assert len(decoded) == 3 + len(SCHEDULES)


def test_only_what_is_in_the_ranges_of_open_sizes_is_decoded(
    path: Path, decoded: list[bytes]
) -> None:
    made = [record(SCHEDULES[0], 1e-4, CUDA, problem) for problem in PROBLEMS] * 3
    path.write_bytes(records.lines(made))
    found(path)
    decoded.clear()
    open_rows = OpenProblem(m=(1, 300), n=(512, 512), k=(512, 512))
    assert {one.problem for one in found(path).covered(open_rows)} == {PROBLEMS[1]}
    assert len(decoded) == 3


def test_a_model_is_found_without_decoding(
    path: Path, decoded: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "train", lambda *_: one_leaf())
    made = [
        record(one, 1e-4, CUDA, problem) for problem in PROBLEMS for one in SCHEDULES
    ]
    path.write_bytes(records.lines(made))
    first = Chooser(TARGET).learned[0]
    decoded.clear()
    again = Chooser(TARGET).learned[0]
    assert first is not None
    assert again is not None
    assert not decoded


def test_a_model_learns_from_a_sample_of_many(path: Path, decoded: list[bytes]) -> None:
    """Of each of its problems the fastest, and slower ones; no more is decoded."""
    problems = [Problem(64 * size, 512, 512) for size in range(1, 41)]
    made = [
        record(schedule, 1e-3 + 1e-5 * (7 * number % 20), CUDA, problem)
        for problem in problems
        for number, schedule in enumerate(SCHEDULES)
    ]
    path.write_bytes(records.lines(made))
    found(path)
    decoded.clear()
    some = found(path).sample(160)
    assert len(some) == len(decoded) == 160
    mine = {
        one: [r.seconds or 0.0 for r in some if r.problem == one] for one in problems
    }
    taken = [one for one in problems if mine[one]]
    assert len(taken) == 10
    assert taken[0] == problems[0]
    assert taken[-1] == problems[-1]
    for one in taken:
        fastest = [1e-3 + 1e-5 * number for number in range(8)]
        assert sorted(mine[one])[:8] == pytest.approx(fastest)
        assert max(mine[one]) == pytest.approx(1e-3 + 1e-5 * 19)
    assert some == found(path, anew=True).sample(160)
    assert found(path).sample(800) == tuple(made)


def one_leaf() -> Forest:
    """The least model."""
    zero, at = np.zeros(1), np.zeros(1, np.int32)
    return Forest(at, at - 1, zero, at, at, zero, at + len(NAMES))


def test_few_records_have_no_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "LEAST_BYTES", 1 << 16)
    records.append(path, some_records(random.Random(0), 20))
    check(path)
    assert not [*path.parent.glob("*.index")]


def test_a_file_that_was_just_written_is_compared(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a tick of the disk's clock another write leaves the same time."""
    monkeypatch.setattr(book, "_SETTLED", 10**12)
    path.write_bytes(records.lines([record(SCHEDULES[0], 1e-4, CUDA)] * 2))
    assert found(path).of(PROBLEM)[0].seconds == 1e-4
    path.write_bytes(path.read_bytes().replace(b"0.0001", b"0.0002"))
    assert found(path).of(PROBLEM)[0].seconds == 2e-4


def test_a_cache_that_cannot_be_written_is_one_line(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_bytes(records.lines([record(SCHEDULES[0], 1e-4, CUDA)] * 3))
    taken = tmp_path / "taken"
    taken.write_text("a file where the folder should be")
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(taken))
    chooser = Chooser(TARGET, path=mine)
    assert chooser.choose(PROBLEM).schedule == SCHEDULES[0]
    (note,) = chooser.counted.notes
    assert note.startswith(f"the index of '{mine}' is not kept, it will be made again")


@pytest.mark.parametrize("how", ["replaced", "cut", "removed"])
def test_a_file_may_change_while_it_is_used(path: Path, how: str) -> None:
    path.write_bytes(records.lines([record(SCHEDULES[0], 1e-4, CUDA)] * 4))
    found(path)
    chooser = Chooser(TARGET)
    assert len(chooser.counted) == 4
    if how == "replaced":
        files.replace(path, records.lines([record(SCHEDULES[1], 2e-4, CUDA)]))
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:50])
    else:
        path.unlink()
    decision = chooser.choose(PROBLEM)
    if how == "replaced":
        assert (decision.schedule, decision.seconds) == (SCHEDULES[1], 2e-4)
    else:
        assert decision.source == "analytical model"


def test_processes_that_append_consult_and_are_killed(path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from alcop_mlir.tuning import records
from alcop_mlir.tuning import record_book as book
book.LEAST_BYTES = 1
path = Path({str(path)!r})
some = records.read(path).records
for _ in range(200):
    records.append(path, some[:1])
    found = book.consult(path)
    assert len(found.records()) >= 4
    print(flush=True)
"""
    path.write_bytes(records.lines(some_records(random.Random(1), 3)))
    running = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    for number, one in enumerate(running):
        assert one.stdout is not None
        for _ in range(10 + 5 * number):
            assert one.stdout.readline() == b"\n"
        one.kill()
        one.stdout.close()
        one.wait()
    check(path)
    assert len(records.read(path).records) >= 3 + 10 + 15 + 20
