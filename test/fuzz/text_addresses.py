"""Addresses of copies in the text of a kernel."""

from __future__ import annotations

from kernels import CARRIED, Array, Buffer, Loop, rows_of
from text_lines import Lines


class AddressText(Lines):
    """Writes from which row on an iteration copies."""

    def base(self, number: int, place: int, buffer: Buffer, loop: Loop) -> str:
        """The row of the source that the first thread copies."""
        index = self.index_of(number)
        if self.kernel.outer:
            index = self.add(index, "%o")
        if buffer.address in CARRIED:
            # Of the rows that there are, whatever the number of iterations is.
            return self.new(f"arith.remui %p{number}{place}, %wrap : index")
        if buffer.address == "index":
            return index
        if buffer.address == "branch":
            return self._branch(index)
        if buffer.address == "dependent":
            row = self.new(f"arith.andi %a{number}{place}, %seven : i32")
            return self.new(f"arith.index_castui {row} : i32 to index")
        tables = (f"%I{number}{place}", f"%J{number}{place}")
        if buffer.address == "invariant":
            return self.looked_up(tables[0], "%c1", loop)
        if buffer.address == "rows":
            index = self.add(index, "%t")
        row = self.looked_up(tables[0], index, loop)
        if buffer.address == "two-level":
            return self.looked_up(tables[1], row, loop)
        return row

    def looked_up(self, table: str, index: str, loop: Loop) -> str:
        """An entry of a table of rows, as an index."""
        kind = Array("", (rows_of(self.kernel, loop),), "i32").type
        row = self.new(f"memref.load {table}[{index}] : {kind}")
        return self.new(f"arith.index_castui {row} : i32 to index")

    def next_address(self, number: int, place: int, buffer: Buffer, loop: Loop) -> str:
        """What a carried address becomes."""
        value = f"%p{number}{place}"
        if buffer.address == "chase":
            return self.looked_up(f"%I{number}{place}", value, loop)
        moved = self.add(value, "%c2")
        if buffer.address == "carried":
            return moved
        return self.new(f"arith.remui {moved}, %wrap : index")

    def _branch(self, index: str) -> str:
        few = self.new(f"arith.cmpi ult, {index}, %c3 : index")
        row = self.fresh()
        self.open(f"{row} = scf.if {few} -> (index) {{")
        self.emit(f"scf.yield {index} : index")
        self.else_()
        self.emit(f"scf.yield {self.add(index, '%c1')} : index")
        self.close()
        return row
