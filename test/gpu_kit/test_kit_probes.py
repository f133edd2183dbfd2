"""The probes: they run, tell right from wrong, and agree with hardware's results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from alcop_mlir.errors import CompileError
from alcop_mlir.runtime import ptx
from alcop_mlir.target import find_target
from bench.gpu import probes
from bench.gpu.probe import FOLDER, Probe
from bench.gpu.probes import all_probes

GOLDEN = sorted(Path(__file__).parent.glob("golden/*.json"))
PROBES = {probe.name: probe for probe in all_probes()}


def test_probes_have_names_of_their_own() -> None:
    assert len(PROBES) == len(all_probes())


@pytest.mark.parametrize("name", PROBES)
def test_probes_run_on_the_emulator(name: str) -> None:
    """The same each time, and different where the inputs are: they look at them."""
    probe = PROBES[name]
    found = probe.emulated()
    assert not probe.differences(found, probe.emulated())
    first, *rest = probe.inputs
    changed = Probe(
        **{**vars(probe), "inputs": (np.roll(first, 1) ^ np.uint32(0x00010001), *rest)}
    )
    assert probe.differences(changed.emulated(), found)


@pytest.mark.parametrize("name", PROBES)
def test_one_wrong_word_is_found(name: str) -> None:
    probe = PROBES[name]
    found = probe.emulated()
    number = len(found) // len(probe.forms) // 2
    wrong = found.copy()
    # The exponent's upper bits, for the forms that are compared as numbers.
    wrong[number] ^= 0x20002000
    assert probe.differences(wrong, found) == {probe.forms[0][0]: 1}


def test_nan_are_all_alike() -> None:
    quiet, other = (np.array([bits], np.uint32) for bits in (0x7FC00000, 0x7F800001))
    for kind, same in (("f32", True), ("bits", False)):
        probe = Probe("x", "x", (), 1, (("form", kind),))
        assert (probe.differences(quiet, other) == {}) is same
    halves = Probe("x", "x", (), 1, (("form", "f16"),))
    one, two = (np.array([bits], np.uint32) for bits in (0x7E003C00, 0xFFFF3C00))
    assert not halves.differences(one, two)
    assert halves.differences(one, two ^ np.uint32(1)) == {"form": 1}


def test_results_are_kept_exactly() -> None:
    results = {name: probe.emulated() for name, probe in PROBES.items()}
    about, found = probes.read_golden(probes.golden(results, {"gpu": "none"}))
    assert about == {"gpu": "none"}
    for name, words in results.items():
        assert np.array_equal(found[name], words)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ptx")), ids=str)
def test_probes_can_be_assembled(path: Path) -> None:
    if ptx.find_ptxas() is None:
        pytest.skip("needs ptxas")
    try:
        text = path.read_text()
        name = "sm_90a" if ".target sm_90a" in text else "sm_90"
        ptx.assemble(text, find_target(name))
    except CompileError as error:  # pragma: no cover
        pytest.fail(str(error))


@pytest.mark.skipif(not GOLDEN, reason="no results of hardware yet")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_emulator_does_what_hardware_did(path: Path) -> None:
    """Files golden/*.json, which `make gpu-check` wrote on a machine with a GPU."""
    _, results = probes.read_golden(path.read_text())
    for name, words in results.items():
        assert not PROBES[name].differences(words, PROBES[name].emulated()), name
