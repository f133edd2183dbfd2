"""Random instructions: what the checker and the prover say that registers hold, they
hold in a run, whatever parameters are.

ALCOP_CERTIFICATE_INSTRUCTIONS=5000 tries so many programs, from number
ALCOP_CERTIFICATE_FIRST on.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from random_instructions import BLOCKS, REGISTERS, THREADS, Program, drawn

from alcop_mlir.checker.bounds.every_thread import EveryThread
from alcop_mlir.checker.bounds.thread import Thread
from alcop_mlir.checker.form.certificate import Promises
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers, Facts
from alcop_mlir.checker.logic.terms import (
    Choice,
    Clause,
    Division,
    Product,
    Quotient,
    Term,
)
from alcop_mlir.checker.machine.arithmetic import Holds, Mixed, Same, Value
from alcop_mlir.checker.machine.cells import Cells
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.text import Kernel, read_kernel
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import emulate

CHUNK = 10
COUNT = int(os.environ.get("ALCOP_CERTIFICATE_INSTRUCTIONS", CHUNK))
FIRST = int(os.environ.get("ALCOP_CERTIFICATE_FIRST", 0))
RANGES = {"n": (0, 2**31 - 1), "m": (0, 2**31 - 1)}
GIVEN = ((0, 0, 0), (1, 3, 5), (16, 64, 2**32 - 1), (77, 1000, 2**31))
GIVEN = (*GIVEN, (2**31 - 1, 2**31 - 1, 1), (4095, 2**30 + 1, 40000))


def runnable(program: Program) -> Program:
    """What is left of it without forms of instructions that there are not."""
    while True:
        try:
            Run(program, GIVEN[0])
        except EmulationError as error:
            found = re.search(r"PTX line (\d+): instruction not supported", str(error))
            if found is None:
                raise
            program = program.without(int(found[1]))
        else:
            return program


_UNKNOWN = re.compile(r"u\d+(\.\d+)?")


class Unbound(Exception):
    """A symbol of which the run says nothing."""


class Run:
    """One run: what each thread of each block holds, and what symbols are."""

    def __init__(self, program: Program, given: tuple[int, int, int]):
        n, m, loaded = given
        out = np.zeros((BLOCKS, THREADS, len(REGISTERS)), np.uint64)
        words = np.full(4, loaded, np.uint32)
        launch = "f", (BLOCKS, 1, 1), (THREADS, 1, 1), [words, n, m, out]
        emulate(program.ran, *launch, hazards=False)
        self.held = {name: out[..., i] for i, name in enumerate(REGISTERS)}
        self.given = {".n": n, ".m": m, "%nctaid.x": BLOCKS}


class Names:
    """What symbols are in one block of a run; own: those of each thread."""

    def __init__(self, run: Run, block: int, own: dict[str, np.ndarray]):
        self.known: dict[str, Any] = {**run.given, "%ctaid.x": block}
        self.own = own

    def symbol(self, symbol: str) -> np.ndarray | int:
        if symbol in self.own:
            return self.own[symbol].astype(object)
        if symbol in self.known:
            return self.known[symbol]
        if isinstance(symbol, Quotient):
            return self.term(symbol.dividend) // symbol.divisor
        if isinstance(symbol, Product):
            return math.prod(self.symbol(one) for one in symbol.factors)
        if isinstance(symbol, Division):
            a, b = self.term(symbol.dividend), self.term(symbol.by)
            return a % b if symbol.is_rest else a // b
        if isinstance(symbol, Choice):
            sides = (each(self.term(t)) for t in (symbol.first, symbol.second))
            return np.where(self.clause(symbol.true), *sides)
        if "*" in symbol and "(" not in symbol:
            return math.prod(self.symbol(one) for one in symbol.split("*"))
        raise Unbound(symbol)

    def term(self, term: Term) -> np.ndarray | int:
        rest = (factor * self.symbol(s) for s, factor in term.items() if s and factor)
        return sum(rest, term.get("", 0))

    def clause(self, clause: Clause) -> np.ndarray | bool:
        found: np.ndarray | bool = False
        for facts in clause:
            one: np.ndarray | bool = True
            for fact in facts:
                one = one & (self.term(fact) >= 0)
            found = found | one
        return found


def each(number: np.ndarray | int | bool) -> np.ndarray:
    """A number of each thread, of any size."""
    return np.broadcast_to(np.asarray(number, object), (THREADS,))


def differs(name: str, value: Value, width: int, held: np.ndarray, names: Names) -> str:
    """What a register is said to hold in a block, and does not; nothing if it may."""
    if value is None:
        return ""
    if isinstance(value, np.ndarray):
        told = value.astype(object)
    elif isinstance(value, Holds):
        told = names.clause(value.true)
        if (np.asarray(told) == names.clause(value.false)).any():
            return f"{name} is neither or both"
    elif isinstance(value, Same):
        told = names.term(value.term)
        if np.any(told < value.low) or np.any(told > value.high):
            return f"{name} is not from {value.low} to {value.high}"
    else:
        assert isinstance(value, Mixed)
        parts = value.parts.items()
        told = sum(
            (c.astype(object) * names.symbol(s) for s, c in parts), value.constant
        )
        if np.any(told < value.low) or np.any(told > value.high):
            return f"{name} is not from {value.low} to {value.high}"
    mask = (1 << width) - 1
    is_equal = (each(told) & mask) == (held.astype(object) & mask)
    return "" if np.all(is_equal) else f"{name} is {held[~is_equal][:1]}, not {value}"


def bind(value: Value, width: int, held: np.ndarray, names: Names) -> None:
    """What an unknown is, where a register holds nothing else: of one thread that
    stands for all, as `u5.0`, another one in each.
    """
    if not isinstance(value, Same) or len(terms.frozen(value.term)) != 1:
        return
    ((symbol, factor),) = terms.frozen(value.term)
    half = 1 << (width - 1)
    fits = -half <= value.low and value.high < half * (1 + (value.low >= 0))
    if factor == 1 and fits and _UNKNOWN.fullmatch(symbol):
        number = each(held if "." in symbol else int(held[0]))
        if value.low < 0:
            number = number - (number >> (width - 1) << width)
        names.known.setdefault(symbol, number)


def by_machine(kernel: Kernel, runs: list[Run]) -> Iterator[str]:
    """Numbers of threads and terms, after each instruction that all threads execute."""
    required = {name: (*limits, 1) for name, limits in RANGES.items()}
    machine = Machine(kernel, THREADS, 0, {}, required, {})
    machine.state = State(0, {}, Cells(1))
    for pc, ins in enumerate(kernel.code[:-1]):
        machine.state.pc = pc
        guard = machine.guard(ins)
        if isinstance(guard, np.ndarray):
            machine.execute(ins, (guard & np.uint64(1)).astype(bool))
        else:
            for name in ins.results:
                machine.state.registers[name] = None
    held = machine.state.registers
    yield from compared(kernel, held, runs, {}, lambda names: "")


def by_thread(kernel: Kernel, runs: list[Run]) -> Iterator[str]:
    """Terms of one thread that stands for all, and facts."""
    thread = Thread(kernel, THREADS, promises(None), Nobody([], [], []))
    thread.way = thread.start.fork()
    for pc, ins in enumerate(kernel.code[:-1]):
        thread.state.pc = pc
        thread.run(ins)

    def wrong(names: Names) -> str:
        for fact in thread.way.facts.values():
            with suppress(Unbound):
                if np.any(names.term(fact) < 0):
                    return f"{fact} is no fact"
        return ""

    yield from compared(kernel, thread.way.registers, runs, thread.facts.own, wrong)


def compared(kernel, held, runs, own, wrong) -> Iterator[str]:
    for run in runs:
        for block in range(BLOCKS):
            names = Names(run, block, own)
            for name in REGISTERS:
                bind(held.get(name), kernel.width(name), run.held[name][block], names)
            for name in REGISTERS:
                with suppress(Unbound):
                    width, there = kernel.width(name), run.held[name][block]
                    if found := differs(name, held.get(name), width, there, names):
                        yield f"{run.given} block {block}: {found}"
            if found := wrong(names):
                yield f"{run.given} block {block}: {found}"


class Nobody(Answers):
    """Who has no proof of anything."""

    def proof(self, facts: Facts, query, given, clauses) -> None:
        return None


def promises(given: dict[str, int] | None) -> Promises:
    arrays = {"a": ([(16, ())], []), "out": ([(1 << 20, ())], [])}
    values = {} if given is None else {n[1:]: [(v, ())] for n, v in given.items()}
    sizes = {name: (*limits, 1) for name, limits in RANGES.items()}
    grid = {f"%ctaid.{axis}": [([(1, ())], 1)] for axis in "yz"}
    grid["%ctaid.x"] = [([(BLOCKS, ())], 1)]
    return Promises(arrays, values, sizes, grid, [], given is not None)


def by_numbers(kernel: Kernel, runs: list[Run]) -> Iterator[str]:
    """Numbers of all threads of all blocks."""
    for run in runs:
        known = {n: v for n, v in run.given.items() if n[0] == "."}
        every = EveryThread(Flow(kernel), THREADS, promises(known), {*REGISTERS, "%t0"})
        every.run()
        for name in REGISTERS:
            number, mask = every.held[name], np.uint64(2 ** kernel.width(name) - 1)
            there = run.held[name].reshape(1, 1, BLOCKS, THREADS)
            known = np.broadcast_to(number.known & (number.base == 0), there.shape)
            wrong = ((number.lanes ^ there) & mask != 0) & known
            if wrong.any():
                yield f"{run.given}: {name} is {there[wrong][:1]}, not {number.lanes}"


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, CHUNK))
def test_no_run_contradicts_what_registers_hold(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        program = runnable(drawn(seed))
        kernel = read_kernel(program.text, "f")
        runs = [Run(program, given) for given in GIVEN]
        for way in (by_machine, by_thread, by_numbers):
            found = next(way(kernel, runs), None)
            assert found is None, (seed, way.__name__, found)
    print(seen)
