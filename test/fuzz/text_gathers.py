"""Gathers in the text of a kernel."""

from __future__ import annotations

from kernels import Array, Buffer, Loop, rows_of
from text_addresses import AddressText


class GatherText(AddressText):
    """Writes gathers of a whole buffer."""

    def gather(self, number: int, place: int, buffer: Buffer, loop: Loop) -> None:
        """Rows side by side, from a number on that a table may give each of them."""
        form, name = buffer.copies[0], f"{number}{place}"
        rows = f"vector<{self.threads}xindex>"
        flags = f"vector<{self.threads}xi1>"
        row = self.new(f"vector.step : {rows}")
        if buffer.address == "rows":
            base = self.index_of(number)
            bases = self._looked_up_rows(f"%I{name}", base, loop)
        else:
            base = self.base(number, place, buffer, loop)
            bases = self.new(f"vector.broadcast {base} : index to {rows}")
        row = self.new(f"arith.addi {row}, {bases} : {rows}")
        size = self.new(f"arith.constant dense<{buffer.row}> : {rows}")
        offsets = self.new(f"arith.muli {row}, {size} : {rows}")
        valid = self.new(f"arith.constant dense<true> : {flags}")
        if form == "gather-some":
            limit = self.new(f"arith.constant dense<{self.threads // 2 + 3}> : {rows}")
            valid = self.new(f"arith.cmpi ult, {row}, {limit} : {rows}")
        width, kind_of_width = "", ""
        if form == "gather-width":
            most = self.constant(buffer.row + 1)
            width = ", " + self.new(f"arith.remui {base}, {most} : index")
            kind_of_width = ", index"
        kind = self.source_type(buffer, loop)
        elements = rows_of(self.kernel, loop) * buffer.row
        flat = f"memref<{elements}x{buffer.source}>"
        source = self.new(
            f"memref.collapse_shape %G{name} [[0, 1]] : {kind} into {flat}"
        )
        target = self.target(number, place, buffer)
        self.emit(
            f'"alcop.gather"({source}, {target}, {offsets}, {valid}{width}) : ({flat}, '
            f"{self.view_type(buffer, loop)}, {rows}, {flags}{kind_of_width}) -> ()"
        )

    def _looked_up_rows(self, table: str, index: str, loop: Loop) -> str:
        """Neighbouring entries of a table of rows, as a vector of indices."""
        kind = Array("", (rows_of(self.kernel, loop),), "i32").type
        words, rows = (f"vector<{self.threads}x{one}>" for one in ("i32", "index"))
        read = self.new(
            f"vector.transfer_read {table}[{index}], %seven {{in_bounds = [true]}} : "
            f"{kind}, {words}"
        )
        return self.new(f"arith.index_castui {read} : {words} to {rows}")
