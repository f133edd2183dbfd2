"""Runs the processes of a kernel as far as what is known lets them: `Run`."""

from __future__ import annotations

from typing import Any

from alcop_mlir.verifier.rings.code import Instruction
from alcop_mlir.verifier.rings.machine import Machine
from alcop_mlir.verifier.rings.records import Slot, Wrong


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
        for slot in self._own(number, one.data, self._whole(number, one)):
            self.state.read(number, slot)
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
        return self.places[number].at + 1

    def _warp(self, number: int) -> list[int]:
        warp = self.processes[number].lanes.warp
        return [n for n, p in enumerate(self.processes) if p.lanes.warp == warp]
