"""The checker's machine: what it computes of equal operands, and who touches what."""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.checker.machine.arithmetic import Mixed, Value
from alcop_mlir.checker.machine.cells import Cells
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.ptx.text import read_kernel
from alcop_mlir.errors import CertificateError

THREADS, BYTES = 32, 128
TEXT = """
.visible .entry f(.param .u64 a)
.reqntid 32, 1, 1
{
.reg .b32 %r<9>;
.shared .align 16 .b8 buffer[128];
and.b32 %r3, %r1, %r2;
st.shared.b32 [%r4], %r3;
}
"""


def run(pc: int, registers: dict[str, Value], *residues: int) -> list[State]:
    """The instruction with these operands, for each residue of `.a` modulo 4."""
    machine = Machine(read_kernel(TEXT, "f"), THREADS, BYTES, {"buffer": 0}, {}, {})
    states = []
    for one in residues:
        cells = Cells(BYTES // machine.grain + 1)
        state = State(pc, dict(registers), cells, residues={".a": (one, 4)})
        machine.state = state
        machine.execute(machine.kernel.code[pc], machine.every)
        states.append(state)
    return states


def test_low_bits_are_those_of_each_residue() -> None:
    """Also where operands are the same objects: nothing is looked up of another way."""
    one = np.ones(THREADS, np.int64)
    total = Mixed({".a": one}, np.arange(THREADS), 0, 1000, 32)
    mask = np.full(THREADS, 3, np.uint64)
    found = run(0, {"%r1": total, "%r2": mask}, 0, 1, 3)
    for residue, state in zip((0, 1, 3), found, strict=True):
        lanes = state.registers["%r3"]
        assert isinstance(lanes, np.ndarray)
        assert lanes.tolist() == [(t + residue) % 4 for t in range(THREADS)]


def test_two_threads_write_one_place() -> None:
    places = np.arange(THREADS, dtype=np.uint64) * 4
    run(1, {"%r4": places}, 0)
    places[5] = places[17]
    with pytest.raises(CertificateError, match="two threads write one place"):
        run(1, {"%r4": places}, 0)


def test_cells_of_cases_are_of_threads_of_their_own() -> None:
    cells = Cells(3)
    at, threads = np.array([0, 1]), np.array([40, 7], np.int16)
    cells.write(at, threads, at[:0], False)
    cells.read(at[1:], threads[1:], at[:0], False)
    both = cells.repeated(2, 64)
    assert both.writer.tolist() == [40, 7, -1, 104, 71, -1]
    assert both.reader.tolist() == [-1, 7, -1, -1, 71, -1]
    cells.warp_barrier()
    both = cells.repeated(2, 64)
    none = np.zeros(0, np.int64)
    both.read(np.array([3]), np.array([96 + 5], np.int16), none, False)
    with pytest.raises(CertificateError, match="read that may not be there"):
        both.read(np.array([3]), np.array([37], np.int16), none, False)
