"""The checker forgets an unknown where the instruction that makes it comes again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ring_kernels import THREADS, steady_ring

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.checker.check import check
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.arithmetic import Same
from alcop_mlir.checker.machine.cells import Cells
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.predicates import symbols_of
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.ptx.text import read_kernel
from alcop_mlir.checker.walk import Walk

SMALL = 2**31 - 1
TEXT = steady_ring()


def of_memory(text: str) -> str:
    """With sizes and addresses that are read from memory."""
    load = "ld.param.u64 %rd2, [out];"
    text = text.replace("ld.param.u64 %rd1, [in];", "")
    text = text.replace(load, f"{load}\n  ld.global.b64 %rd1, [%rd2];")
    return text.replace("ld.param.u64 %rd3, [n];", "ld.global.b64 %rd3, [%rd2+8];")


def test_what_names_it_is_forgotten() -> None:
    kernel = read_kernel(of_memory(TEXT), "ring")
    machine = Machine(kernel, THREADS, 768, {"tiles": 0}, {}, {})
    pc = next(n for n, one in enumerate(kernel.code) if one.opcode == "ld.global.b64")
    old, other = f"u{pc}", {"u99": 1, "": -3}
    cells = Cells(4)
    cells.source[1] = machine.sources.number({old: 1})
    cells.source[2] = machine.sources.number({"u99": 1})
    held = {"%r1": Same({old: 1}, 0, SMALL), "%r2": Same({"u99": 1}, 0, SMALL)}
    facts = [{old: 1, "": -3}, other]
    machine.state = State(pc, {"%rd2": held["%r2"], **held}, cells, facts, made={old})
    machine.execute(kernel.code[pc], machine.every)
    registers = machine.state.registers
    assert (registers["%r1"], registers["%r2"]) == (None, held["%r2"])
    assert registers["%rd1"] is not None
    assert machine.state.facts == [other]
    assert machine.forgotten == {"%r1"}
    assert cells.source.tolist() == [1, 0, machine.sources.number({"u99": 1}), 1]


def test_listed_states_say_which_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """In registers, facts, and where the bytes of cells come from."""
    walked: list[tuple[Walk, State]] = []
    run = Walk.run

    def recorded(walk: Walk, state: State, arrive: Callable[[State], None]) -> None:
        walked.append((walk, state.fork()))
        run(walk, state, arrive)

    text = of_memory(TEXT)
    found = certify(text).certificate
    assert found is not None
    monkeypatch.setattr(Walk, "run", recorded)
    check(text, found, Found())
    of_registers: set[str] = set()
    of_sources: set[str] = set()  # alone
    for walk, state in walked[1:]:
        known = [walk.machine.sources.known[n] for n in set(state.cells.source)]
        names = terms.inside(*state.facts)
        names = names.union(*map(symbols_of, state.registers.values()))
        assert {n for n in names | terms.inside(*known) if n[0] == "u"} <= state.made
        of_registers |= {n for n in names if n[0] == "u"}
        of_sources |= {n for n in terms.inside(*known) - names if n[0] == "u"}
    assert of_registers
    assert of_sources
