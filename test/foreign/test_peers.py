"""What peers pipeline by their own tests, we pipeline: each row of `peers/`.

A row that is pipelined gives the bits of the unpipelined program, without a hazard and
with nothing found by the structural check; one that is refused says why, and is left
unchanged. `peer_rows.py` says what a row is.

    ALCOP_PEERS=all   all stage counts, tails, landings and schedules, not one each
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from differential import (
    SCHEDULES,
    VISIBILITIES,
    Compiled,
    Settings,
    compile_both,
    context,
    find,
    launch,
)
from peer_rows import NO_REMARK, Row, omissions, rows
from pipelining_page import document

from alcop_mlir import diagnostics, dtypes
from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.named import AlcopPipeline
from alcop_mlir.pipelines.running import PassFailure
from alcop_mlir.verifier.check import check

ROWS = rows()
PLANNED = [row for row in ROWS if "lists" in row.header]
UNPIPELINED = Settings((1, 1))
ALL = os.environ.get("ALCOP_PEERS") == "all"
STAGES = ((3, 1), (2, 1), (4, 2), (6, 1), (3, 2))
REGISTER_STAGES = ((1, 2), (3, 3), (1, 4), (2, 2))  # where no copy is pipelined
TAILS = ("predicated", "wrap")
MODES = [(seen, order) for seen in VISIBILITIES for order in SCHEDULES]
# What alcop-pipeline runs before it plans.
PREPARE = tuple(
    itertools.takewhile(
        lambda step: not step.startswith("alcop-plan-pipelines"),
        AlcopPipeline().steps(),
    )
)
LEAST_SHARE = 0.88  # of the loops that peers pipeline
PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipelining.md"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row(row: Row) -> None:
    before = prepared(row)
    levels, remarks, after = planned(row, before)
    assert levels == row.levels, "\n".join(remarks)
    if row.remark == NO_REMARK:
        assert remarks == []
    else:
        assert row.remark in "\n".join(remarks)
    if not levels:
        assert after == before
    elif row.runs:
        assert_right(row, before)
    else:
        assert_checked(row, before)


@pytest.mark.parametrize("row", PLANNED, ids=[row.name for row in PLANNED])
def test_the_plan_of_the_peer(row: Row) -> None:
    """Its stages and orders on the loop give the same bits, or are an error."""
    if row.lists_error:
        with pytest.raises(PassFailure) as failure:
            expanded(row)
        assert row.lists_error in str(failure.value)
        return
    text = expanded(row)
    if not row.runs:
        return
    done = compiled(text, UNPIPELINED)
    for number, size in enumerate(row.lists_sizes):
        mode = MODES[number % len(MODES)]
        assert results(row, done, size, mode) == expected(row, size), (mode, size)


def expanded(row: Row) -> str:
    """The row's module with the peer's plan carried out."""
    with context(), ir.Location.unknown(), diagnostics.collect():
        module = ir.Module.parse(row.text)
        for step in ("alcop-multi-buffer", "alcop-expand-pipelines"):
            run_pipeline(module, f"builtin.module({step})")
        assert check(module.operation) == []
        return str(module)


def prepared(row: Row) -> str:
    """The row's module after what runs before planning."""
    with context(), ir.Location.unknown(), diagnostics.collect():
        module = ir.Module.parse(row.unplanned)
        steps = filter(None, [row.prepare, *PREPARE])
        run_pipeline(module, f"builtin.module({','.join(steps)})")
        return str(module)


def planned(row: Row, text: str) -> tuple[dict[str, int], list[str], str]:
    """Copies that are pipelined, by level; the remarks; the module afterwards."""
    settings = Settings(row.stages, noalias=row.noalias)
    report = Path("report.json")
    with context(), ir.Location.unknown(), diagnostics.collect() as said:
        module = ir.Module.parse(text)
        run_pipeline(module, f"builtin.module({settings.plan(report)})")
        after = str(module)
    entries = json.loads(report.read_text())
    levels = Counter(entry["level"] for entry in entries if entry["pipelined"])
    return dict(levels), [found.message for found in said], after


def assert_right(row: Row, text: str) -> None:
    """The bits of the unpipelined program, at several stage counts and sizes."""
    for stages, tail, modes in variants(row):
        done = compiled(text, Settings(stages, tail=tail, noalias=row.noalias))
        assert done.levels, stages
        for number, size in enumerate(sizes(row)):
            for mode in modes if ALL else [modes[number % len(modes)]]:
                found = results(row, done, size, mode)
                assert found == expected(row, size), (stages, tail, mode, size)


def sizes(row: Row) -> list[tuple[int, ...]]:
    """Sizes to run: all, or all but one by the row's name, which is not the last."""
    if ALL or len(row.sizes) < 4:
        return row.sizes
    left_out = chosen_by_name(row) % (len(row.sizes) - 1)
    return row.sizes[:left_out] + row.sizes[left_out + 1 :]


def assert_checked(row: Row, text: str) -> None:
    """Nothing is found by the structural check, for each stage count."""
    for stages, tail, _ in variants(row):
        plan = Settings(stages, tail, row.noalias).plan(Path("report.json"))
        steps = f"{plan},alcop-multi-buffer,alcop-expand-pipelines,alcop-place-waits"
        with context(), ir.Location.unknown(), diagnostics.collect():
            module = ir.Module.parse(text)
            run_pipeline(module, f"builtin.module({steps})")
            assert check(module.operation) == []


def variants(row: Row) -> list[tuple[tuple[int, int], str, list[tuple[str, str]]]]:
    """Stage counts, tail, modes: all, or one by the row's name."""
    counts = STAGES if "shared" in row.levels else REGISTER_STAGES
    everything = [(stages, tail, MODES) for stages in counts for tail in TAILS]
    return everything if ALL else [everything[chosen_by_name(row) % len(everything)]]


def chosen_by_name(row: Row) -> int:
    """The same number each time, another for another row."""
    return zlib.crc32(row.name.encode())


def compiled(text: str, settings: Settings) -> Compiled:
    """Compile; fails where the structural check finds something."""
    both = compile_both(text, settings)
    assert both.wrong == ()
    return both.pipelined


@functools.cache
def unpipelined(row: Row) -> Compiled:
    """The row's kernel as it is."""
    return compile_both(row.unplanned, UNPIPELINED).plain


@functools.cache
def expected(row: Row, size: tuple[int, ...]) -> list[bytes]:
    """The arrays after the unpipelined kernel."""
    return results(row, unpipelined(row), size, MODES[0])


def results(
    row: Row, done: Compiled, size: tuple[int, ...], mode: tuple[str, str]
) -> list[bytes]:
    """The arrays afterwards; fails on a hazard."""
    data = arrays(row)
    block = (row.threads, 1, 1)
    assert launch(done, (row.grid, 1, 1), block, [*data, *size], mode) == ()
    return [array.tobytes() for array in data]


def arrays(row: Row) -> list[np.ndarray]:
    """An array for each memref, with the same numbers each time."""
    data: list[np.ndarray] = []
    for number, (shape, element) in enumerate(arguments(row)):
        random = np.random.default_rng(number)
        if dtypes.is_integer(element):
            dtype = dtypes.NUMPY_DTYPES[element]
            data.append(random.integers(0, row.tables, shape).astype(dtype))
        else:
            data.append(dtypes.encode(random.uniform(-1, 1, shape), element))
    return data


@functools.cache
def arguments(row: Row) -> list[tuple[tuple[int, ...], str]]:
    """Shape and element of each memref of the kernel."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(row.text)
        (kernel,) = find(module, "gpu.func")
        inputs = list(kernel.attributes["function_type"].value.inputs)
        memrefs = [t for t in inputs if isinstance(t, ir.MemRefType)]
        return [(tuple(t.shape), str(t.element_type)) for t in memrefs]


def test_enough_is_pipelined() -> None:
    counted = [row for row in ROWS if row.counted]
    pipelined = [row for row in counted if not row.remark]
    assert len(pipelined) >= LEAST_SHARE * len(counted)


def test_omissions_have_reasons() -> None:
    assert all(one.reason and one.functions for one in omissions())


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == document(), (
        "run: python test/foreign/pipelining_page.py > docs/pipelining.md"
    )
