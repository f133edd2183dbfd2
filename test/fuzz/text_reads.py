"""Reads of what was copied, in the text of a kernel."""

from __future__ import annotations

from kernels import Buffer, Loop
from text_copies import CopyText


class ReadText(CopyText):
    """Writes what a thread reads in one iteration, and accumulates."""

    def reads(
        self, number: int, place: int, buffer: Buffer, loop: Loop, steps: str
    ) -> str:
        """The accumulator after the iteration."""
        acc = f"%a{number}{place}"
        if buffer.is_register:
            return self._read_source(number, place, buffer, loop, acc)
        if buffer.read.endswith("steps"):
            end = steps if buffer.read == "run-time-steps" else f"%c{buffer.steps}"
            result, index, inner = self.fresh(), self.fresh(), self.fresh()
            self.open(
                f"{result} = scf.for {index} = %c0 to {end} step %c1 "
                f"iter_args({inner} = {acc}) -> ({buffer.element}) {{"
            )
            value = self._read_row(number, place, buffer, loop, inner, index)
            self.emit(f"scf.yield {value} : {buffer.element}")
            self.close()
            return result
        if buffer.read == "branch":
            few = self.new(f"arith.cmpi ult, %t, %c{self.threads // 4} : index")
            result = self.fresh()
            self.open(f"{result} = scf.if {few} -> ({buffer.element}) {{")
            value = self._read_row(number, place, buffer, loop, acc, "")
            self.emit(f"scf.yield {value} : {buffer.element}")
            self.else_()
            self.emit(f"scf.yield {acc} : {buffer.element}")
            self.close()
            return result
        return self._read_row(number, place, buffer, loop, acc, "")

    def _read_source(
        self, number: int, place: int, buffer: Buffer, loop: Loop, acc: str
    ) -> str:
        """Without shared memory: a row of the source, by the thread that needs it."""
        row = self.add(self.base(number, place, buffer, loop), "%t")
        kind = self.source_type(buffer, loop)
        for column in range(buffer.row):
            from_ = f"%G{number}{place}[{row}, {self.constant(column)}]"
            value, _ = self._computed(buffer, "scalar", from_, kind)
            acc = self.accumulate(acc, value, buffer.element)
        return acc

    def _other_row(self, buffer: Buffer, step: str) -> str:
        """Another thread's row."""
        copied = self.threads // 2 if buffer.guard == "part" else self.threads
        if buffer.view == "parts":
            # A sum, of which it is known that it is in the iteration's part.
            thread = "%t"
            if copied < self.threads:
                thread = self.new(f"arith.remui %t, {self.constant(copied)} : index")
            return self.new(f"arith.subi {self.constant(copied - 1)}, {thread} : index")
        partner = self.constant(buffer.partner % self.threads)
        row = self.new(f"arith.xori %t, {partner} : index")
        if step:
            row = self.new(f"arith.xori {row}, {step} : index")
        if copied < self.threads:
            row = self.new(f"arith.andi {row}, {self.constant(copied - 1)} : index")
        return row

    def _read_row(
        self,
        number: int,
        place: int,
        buffer: Buffer,
        loop: Loop,
        acc: str,
        step: str,
    ) -> str:
        """`acc` and all elements of another thread's row, in a fixed order."""
        row, kind = self._other_row(buffer, step), self.view_type(buffer, loop)
        for part in range(len(buffer.copies)):
            column = part * buffer.width
            if buffer.read in ("vector", "transfer", "vector-steps"):
                form = "transfer" if buffer.read == "transfer" else "vector"
                at = self.constant(column)
                from_ = self.element(number, place, buffer, row, at)
                value, value_type = self.load(
                    form, buffer.width, buffer.element, from_, kind
                )
                for element in range(buffer.width):
                    one = self.new(
                        f"vector.extract {value}[{element}] : "
                        f"{buffer.element} from {value_type}"
                    )
                    acc = self.accumulate(acc, one, buffer.element)
                continue
            for element in range(buffer.width):
                at = self.constant(column + element)
                from_ = self.element(number, place, buffer, row, at)
                one = self.new(f"memref.load {from_} : {kind}")
                acc = self.accumulate(acc, one, buffer.element)
        return acc
