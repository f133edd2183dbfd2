"""Runs the processes of a kernel as far as what is known lets them: `Run`."""

from __future__ import annotations

from typing import Any

from alcop_mlir.verifier.rings.code import Instruction, Register
from alcop_mlir.verifier.rings.descriptors import extent
from alcop_mlir.verifier.rings.machine import Machine
from alcop_mlir.verifier.rings.numbers import Open
from alcop_mlir.verifier.rings.records import Slot, Wrong
from alcop_mlir.verifier.rings.unproven import Unproven


class Run(Machine):
    """All processes, with what they do together: a method for each kind of event."""

    def _meet_warp(self, number: int, one: Instruction) -> int | None:
        return self._meet(number, self._warp(number), [one.op])

    def _meet_block(self, number: int, one: Instruction) -> int | None:
        block = self._block(number)
        met = [n for n in range(len(self.processes)) if self._block(n) == block]
        return self._meet_all(number, one, met)

    def _meet_cluster(self, number: int, one: Instruction) -> int | None:
        return self._meet_all(number, one, list(range(len(self.processes))))

    def _meet_all(self, number: int, one: Instruction, met: list[int]) -> int | None:
        if any(self.at(other).kind != one.kind for other in met):
            return None
        return self._meet(number, met, [self.at(other).op for other in met])

    def _block(self, number: int) -> int:
        return self.processes[number].lanes.block

    def _meet(self, number: int, met: list[int], ops: list[Any]) -> int | None:
        """Let processes go on together once all are here."""
        if not self._are_here(met, ops):
            return None
        self.state.join(met)
        for other in met:
            if other != number:
                self.places[other].at += 1
        return self.places[number].at + 1

    def _are_here(self, processes: list[int], ops: list[Any]) -> bool:
        return all(self.at(one).op in ops for one in processes)

    def _mbarrier(self, group: Any, slot: int, block: int) -> int:
        first, count = group
        if not 0 <= slot < count:
            raise Wrong(f"mbarrier {slot} does not exist, expected 0 to {count - 1}")
        if not 0 <= block < self.blocks:
            raise Wrong(f"block {block} of the cluster does not exist")
        return block * (len(self.state.mbarriers) // self.blocks) + first + slot

    def _fence_mbarriers(self, number: int, one: Instruction) -> int:
        self.state.fence_mbarriers(number)
        return self.places[number].at + 1

    def _initialise(self, number: int, one: Instruction) -> int:
        slot, count = self._whole(number, one)
        mbarrier = self._mbarrier(one.data, slot, self._block(number))
        threads = self.processes[number].lanes.threads
        self.state.initialise(number, mbarrier, count, threads)
        return self.places[number].at + 1

    def _arrive(self, number: int, one: Instruction) -> int:
        slot, size, block = self._whole(number, one)
        if block is None:
            block = self._block(number)
        mbarrier = self._mbarrier(one.data, slot, block)
        threads = self.processes[number].lanes.threads
        self.state.arrive(number, mbarrier, threads, size, one.op)
        return self.places[number].at + 1

    def _wait(self, number: int, one: Instruction) -> int | None:
        slot, parity = self._whole(number, one)
        mbarrier = self._mbarrier(one.data, slot, self._block(number))
        if number not in self.state.mbarriers[mbarrier].waiting:
            self.state.target(number, mbarrier, parity)
        if not self.state.passes(number, mbarrier, one.op):
            return None
        return self.places[number].at + 1

    def _fill(self, number: int, one: Instruction) -> int:
        at, first, mask = self._whole(number, one)
        group, buffer, of, elements, size = one.data
        slot, start = divmod(first, of.elements)
        if not 0 <= slot < of.slots or start + elements > of.elements:
            raise Wrong(f"copies beyond slot {slot} of {of}")
        threads = self.processes[number].lanes.threads
        part = (start, start + elements)
        if mask is None:
            mask = 1 << self._block(number)
        for block in (n for n in range(mask.bit_length()) if mask >> n & 1):
            mbarrier = self._mbarrier(group, at, block)
            there = (self._buffer(buffer, block), slot)
            self.state.fill(number, there, part, size, mbarrier, threads, one.op)
        return self.places[number].at + 1

    def _buffer(self, buffer: int, block: int) -> int:
        return block * (len(self.state.names) // self.blocks) + buffer

    def _own(self, number: int, buffers: list[int], slots: list[int]) -> list[Slot]:
        """Slots of the block of a process."""
        block = self._block(number)
        own = [self._buffer(buffer, block) for buffer in buffers]
        return list(zip(own, slots, strict=True))

    def _read(self, number: int, one: Instruction) -> int:
        buffers, registers = one.data
        for slot in self._own(number, buffers, self._whole(number, one)):
            self.state.read(number, slot)
        self.state.hold(number, registers)
        return self.places[number].at + 1

    def _multiply(self, number: int, one: Instruction) -> int | None:
        buffers, ends = one.data
        slots = self._whole(number, one)[: len(buffers)]
        warp = self._warp(number)
        # Each process has registers of its own.
        results = {
            other: self.at(other).defs[0] for other in warp if self.at(other).defs
        }
        following = self._meet_warp(number, one)
        if following is None:
            return None
        for other in warp:
            self.state.issue(other, self._own(number, buffers, slots), one.op)
            reader = self.state.readers[other]
            self.places[other].registers[results[other]] = reader.made
            if ends:
                self.state.commit(other)
        return following

    def _issue(self, number: int, one: Instruction) -> int | None:
        """A wgmma as an instruction, behind alcop-lower-mma."""
        warp = self._warp(number)
        if not self._are_here(warp, [one.op]):
            return None
        for other in warp:
            mine = self.at(other)
            if one.data.fenced:
                self.state.fence_registers(other)
            self.state.check_fenced(other, frozenset(mine.defs))
            tiles = self._tiles(other, mine)
            self.state.issue(other, tiles, one.op, one.data.registers)
            self._set(other, mine, [self.state.readers[other].made])
        if len({tuple(self._descriptors(other, self.at(other))) for other in warp}) > 1:
            raise Wrong("its descriptors differ between lanes of a warp")
        return self._meet_warp(number, one)

    def _descriptors(self, number: int, one: Instruction) -> list[int]:
        found = self._values(number, one)[: len(one.data.tiles)]
        if any(isinstance(value, Open) for value in found):
            raise Unproven(one.op, "depends on a number that is not known")
        return found

    def _tiles(self, number: int, one: Instruction) -> list[Slot]:
        """The slots that a wgmma reads, by its descriptors."""
        buffers, slots = list[int](), list[int]()
        descriptors = self._descriptors(number, one)
        tiles = one.data.tiles
        for word, (buffer, of, matrix) in zip(descriptors, tiles, strict=True):
            found = extent(word, matrix)
            if found is None:
                raise Unproven(one.op, "reads a tile that is not swizzled")
            size = of.elements * of.bits // 8
            first, last = found[0] // size, (found[1] - 1) // size
            if first != last or last >= of.slots:
                raise Wrong(f"reads beyond slot {first} of {of}")
            buffers.append(buffer)
            slots.append(first)
        return self._own(number, buffers, slots)

    def _commit(self, number: int, one: Instruction) -> int | None:
        if not self._are_here(self._warp(number), [one.op]):
            return None
        for other in self._warp(number):
            self.state.commit(other)
        return self._meet_warp(number, one)

    def _fence_registers(self, number: int, one: Instruction) -> int | None:
        if not self._are_here(self._warp(number), [one.op]):
            return None
        for other in self._warp(number):
            self.state.fence_registers(other)
        return self._meet_warp(number, one)

    def _fence_proxy(self, number: int, one: Instruction) -> int:
        self.state.fence_proxy(number)
        return self.places[number].at + 1

    def _write(self, number: int, one: Instruction) -> int:
        for buffer, own in one.data:
            self.state.write(number, self._out(number, buffer, own))
        return self.places[number].at + 1

    def _store(self, number: int, one: Instruction) -> int:
        self.state.store(number, self._out(number, *one.data))
        return self.places[number].at + 1

    def _out(self, number: int, buffer: int, own: tuple[int, int] | None) -> Slot:
        """A slot on its way out: of the block, or one of some of a warp."""
        slot = 0
        if own is not None:
            which, count = own
            slot = self.processes[number].lanes.warp * count + which
        return self._own(number, [buffer], [slot])[0]

    def _commit_stores(self, number: int, one: Instruction) -> int:
        self.state.commit_stores(number)
        return self.places[number].at + 1

    def _finish_stores(self, number: int, one: Instruction) -> int:
        self.state.finish_stores(number, one.data)
        return self.places[number].at + 1

    def _meet_threads(self, number: int, one: Instruction) -> int | None:
        """A named barrier: of the processes that come, all threads are counted."""
        name, count = self._whole(number, one)
        block = self._block(number)
        here = [
            other
            for other in range(len(self.processes))
            if self._block(other) == block
            and self.at(other).kind == one.kind
            and self._whole(other, self.at(other))[0] == name
        ]
        threads = sum(self.processes[other].lanes.threads for other in here)
        if threads < count:
            return None
        known = self.barriers.setdefault((block, name), frozenset(here))
        if threads > count or known != frozenset(here):
            raise Wrong(f"barrier {name} is for {count} threads, and others come to it")
        return self._meet(number, here, [self.at(other).op for other in here])

    def _finish(self, number: int, one: Instruction) -> int | None:
        if not self._are_here(self._warp(number), [one.op]):
            return None
        # Each lane has finished when they meet.
        for other in self._warp(number):
            self.state.finish(other, one.data)
        return self._meet_warp(number, one)

    def _use_sums(self, number: int, one: Instruction) -> int:
        reader = self.state.readers[number]
        if any(reader.is_unfinished(group) for group in self._values(number, one)):
            raise Wrong("reads accumulators of a group of wgmma that is unfinished")
        registers = (use.number for use in one.uses if isinstance(use, Register))
        self.state.touch(number, frozenset(registers))
        return self.places[number].at + 1

    def _warp(self, number: int) -> list[int]:
        warp = self.processes[number].lanes.warp
        return [n for n, p in enumerate(self.processes) if p.lanes.warp == warp]
