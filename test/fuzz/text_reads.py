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
            value = self._read_row(number, place, buffer, inner, index)
            self.emit(f"scf.yield {value} : {buffer.element}")
            self.close()
            return result
        if buffer.read == "branch":
            few = self.new(f"arith.cmpi ult, %t, %c{self.threads // 4} : index")
            result = self.fresh()
            self.open(f"{result} = scf.if {few} -> ({buffer.element}) {{")
            value = self._read_row(number, place, buffer, acc, "")
            self.emit(f"scf.yield {value} : {buffer.element}")
            self.else_()
            self.emit(f"scf.yield {acc} : {buffer.element}")
            self.close()
            return result
        return self._read_row(number, place, buffer, acc, "")

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

    def _read_row(
        self, number: int, place: int, buffer: Buffer, acc: str, step: str
    ) -> str:
        """`acc` and all elements of another thread's row, in a fixed order."""
        partner = self.constant(buffer.partner % self.threads)
        row = self.new(f"arith.xori %t, {partner} : index")
        if step:
            row = self.new(f"arith.xori {row}, {step} : index")
        if buffer.guard == "part":
            row = self.new(
                f"arith.andi {row}, {self.constant(self.threads // 2 - 1)} : index"
            )
        target, kind = self.target(number, place, buffer), self.view_type(buffer)
        for part in range(len(buffer.copies)):
            column = part * buffer.width
            if buffer.read in ("vector", "transfer", "vector-steps"):
                form = "transfer" if buffer.read == "transfer" else "vector"
                from_ = f"{target}[{row}, {self.constant(column)}]"
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
                from_ = f"{target}[{row}, {self.constant(column + element)}]"
                one = self.new(f"memref.load {from_} : {kind}")
                acc = self.accumulate(acc, one, buffer.element)
        return acc
