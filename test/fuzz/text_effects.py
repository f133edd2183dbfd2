"""What a kernel does beside its copies, in the text of a kernel."""

from __future__ import annotations

from kernels import ATOMICS, Array, Loop, rows_of
from text_lines import GROUP, SPACE, Lines


class EffectText(Lines):
    """Writes effects on memory, and uses of other shared and private memory."""

    def prepare_beside(self, number: int, loop: Loop) -> None:
        """What has to be there before a loop."""
        element = loop.buffers[0].element
        kind = self.side_type(element)
        if "tile" in loop.beside:
            self.barrier()  # what was read of it before
            value = self.new(
                f"memref.load %Q{number}[%t] : memref<{self.threads}x{element}>"
            )
            self.emit(f"memref.store {value}, %q{number}[%t] : {kind}")
            self.barrier()
        if "private" in loop.beside:
            kind = f"memref<1x{element}>"
            self.emit(f"%m{number} = memref.alloca() : {kind}")
            self.emit(f"memref.store %zero_{element}, %m{number}[%c0] : {kind}")

    def beside(self, number: int, loop: Loop, acc: str) -> str:
        """The accumulator after all that a loop does beside."""
        element = loop.buffers[0].element
        for one in loop.beside:
            acc = _BESIDE[one](self, number, loop, acc, element)
        return acc

    def _tile(self, number: int, loop: Loop, acc: str, element: str) -> str:
        other = self.opposite()
        kind = self.side_type(element)
        value = self.new(f"memref.load %q{number}[{other}] : {kind}")
        return self.accumulate(acc, value, element)

    def _pass(self, number: int, loop: Loop, acc: str, element: str) -> str:
        kind, memory = self.side_type(element), f"%w{number}"
        self.emit(f"memref.store {acc}, {memory}[%t] : {kind}")
        self.barrier()
        value = self.new(f"memref.load {memory}[{self.opposite()}] : {kind}")
        acc = self.accumulate(acc, value, element)
        self.barrier()
        return acc

    def _reduction(self, number: int, loop: Loop, acc: str, element: str) -> str:
        """A tree over the threads, two of its levels; all read the first element."""
        kind, memory = self.side_type(element), f"%w{number}"
        add = "addi" if element == "i32" else "addf"
        self.emit(f"memref.store {acc}, {memory}[%t] : {kind}")
        self.barrier()
        level = self.fresh()
        self.open(f"scf.for {level} = %c0 to %c2 step %c1 {{")
        half = self.new(
            f"arith.shrui {self.constant(self.threads // 2)}, {level} : index"
        )
        few = self.new(f"arith.cmpi ult, %t, {half} : index")
        self.open(f"scf.if {few} {{")
        mine = self.new(f"memref.load {memory}[%t] : {kind}")
        there = self.add("%t", half)
        its = self.new(f"memref.load {memory}[{there}] : {kind}")
        both = self.new(f"arith.{add} {mine}, {its} : {element}")
        self.emit(f"memref.store {both}, {memory}[%t] : {kind}")
        self.close()
        self.barrier()
        self.close()
        value = self.new(f"memref.load {memory}[%c0] : {kind}")
        acc = self.accumulate(acc, value, element)
        self.barrier()
        return acc

    def _private(self, number: int, loop: Loop, acc: str, element: str) -> str:
        kind = f"memref<1x{element}>"
        before = self.new(f"memref.load %m{number}[%c0] : {kind}")
        acc = self.accumulate(before, acc, element)
        self.emit(f"memref.store {acc}, %m{number}[%c0] : {kind}")
        return acc

    def _uniform_barrier(self, number: int, loop: Loop, acc: str, element: str) -> str:
        here = self.new(
            f"arith.cmpi ugt, {self.index_of(number)}, {self.constant(loop.lower)} : "
            "index"
        )
        self.open(f"scf.if {here} {{")
        self.barrier()
        self.close()
        return acc

    def effect(self, number: int, loop: Loop, acc: str) -> str:
        """The accumulator after the effect of a loop."""
        first = loop.buffers[0]
        index = self.index_of(number)
        rows = rows_of(self.kernel, loop)
        if loop.effect in ("same", "alias"):
            # The row that the same place loads in the next iteration.
            later = self.add(index, self.constant(loop.step))
            row = self.add(later, "%t")
            array = f"%G{number}0" if loop.effect == "same" else f"%H{number}"
            kind = Array("", (rows, first.row), first.element).type
            self.emit(f"memref.store {acc}, {array}[{row}, %c0] : {kind}")
        kind = Array("", (rows, self.threads), first.element).type
        if loop.effect in ("store", "exchange"):
            self.emit(f"memref.store {acc}, %O{number}[{index}, %t] : {kind}")
        if loop.effect == "exchange":
            self.barrier()
            other = self.opposite()
            value = self.new(f"memref.load %O{number}[{index}, {other}] : {kind}")
            acc = self.accumulate(acc, value, first.element)
        if loop.effect == "in-place":
            before = self.new(f"memref.load %O{number}[%c1, %t] : {kind}")
            after = self.accumulate(before, acc, first.element)
            self.emit(f"memref.store {after}, %O{number}[%c1, %t] : {kind}")
        if loop.effect == "replace":
            before = self.new(f"memref.load %O{number}[{index}, %t] : {kind}")
            acc = self.accumulate(acc, before, first.element)
            self.barrier()  # others store what was loaded
            row = f"{index}, {self.opposite()}"
            self.emit(f"memref.store {acc}, %O{number}[{row}] : {kind}")
            self.barrier()
        if loop.effect == "atomic":
            place = self.new(f"arith.remui %t, %c{ATOMICS} : index")
            self.new(
                f"memref.atomic_rmw addi %seven, %C{number}[{place}] : "
                f"(i32, memref<{ATOMICS}xi32>) -> i32"
            )
        return acc

    # -- before and after the loops --------------------------------------------------

    def foreign_issue(self) -> None:
        """An asynchronous copy that stays in flight over the loops."""
        if self.kernel.foreign == "none":
            return
        self.emit(
            f"%fc = nvgpu.device_async_copy %F[{self.outer_row()}, %t], "
            f"%f[%t, %c0], 1 : {self.per_thread_type('i32')} to "
            f"memref<{self.threads}x1xi32, {SPACE}>"
        )
        if self.kernel.foreign == "committed":
            self.emit(f"%fg = {GROUP}")

    def foreign_read(self) -> None:
        """The wait for it, and a read of what another thread copied."""
        if self.kernel.foreign == "none":
            return
        if self.kernel.foreign == "open":
            self.emit(f"%fg = {GROUP}")
        self.emit("nvgpu.device_async_wait %fg {numGroups = 0 : i32}")
        self.barrier()
        kind = f"memref<{self.threads}x1xi32, {SPACE}>"
        value = self.new(f"memref.load %f[{self.opposite()}, %c0] : {kind}")
        self._result("RF", value, "i32")
        self.barrier()

    def after(self) -> None:
        """A read of what another thread stored in the last iteration."""
        if not self.kernel.after:
            return
        loop = self.kernel.loops[0]
        element = loop.buffers[0].element
        other = self.opposite()
        kind = Array("", (rows_of(self.kernel, loop), self.threads), element).type
        last = self.constant(loop.last)
        value = self.new(f"memref.load %O0[{last}, {other}] : {kind}")
        self._result("RA", value, element)
        self.barrier()

    def refill(self) -> None:
        """The first buffer, used again for something else."""
        if not self.kernel.refill:
            return
        buffer = self.kernel.loops[0].buffers[0]
        kind, element = self.shared(buffer, self.threads), buffer.element
        self.barrier()
        self.emit(f"memref.store %r0#0, %b00[%t, %c0] : {kind}")
        self.barrier()
        value = self.new(f"memref.load %b00[{self.opposite()}, %c0] : {kind}")
        self._result("RB", value, element)
        self.barrier()

    def _result(self, array: str, value: str, element: str) -> None:
        kind = self.per_thread_type(element)
        self.emit(f"memref.store {value}, %{array}[{self.outer_row()}, %t] : {kind}")


_BESIDE = {
    "tile": EffectText._tile,
    "pass": EffectText._pass,
    "reduction": EffectText._reduction,
    "private": EffectText._private,
    "barrier": EffectText._uniform_barrier,
}
