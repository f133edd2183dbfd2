"""Copies in the text of a kernel."""

from __future__ import annotations

from kernels import (
    ASYNC_FORMS,
    GATHERS,
    LOOP_FORMS,
    SCALAR_FORMS,
    Buffer,
    Loop,
)
from text_gathers import GatherText
from text_lines import GROUP

_FILLS = {
    "zero": ("0", "0.0"),
    "one": ("1", "1.0"),
    "least": ("-2147483648", {"f16": "0xFC00", "f32": "0xFF800000"}),
}


class CopyText(GatherText):
    """Writes copies into shared buffers."""

    def copies(self, number: int, place: int, buffer: Buffer, loop: Loop) -> None:
        """All copies of a buffer in one iteration."""
        if buffer.copies[0] in GATHERS:
            self.gather(number, place, buffer, loop)
            return
        base = self.base(number, place, buffer, loop)
        if buffer.is_tile:
            self._tile_copy(number, place, buffer, loop, base)
            return
        row = self.add(base, "%t")
        guard = self._guard(number, buffer, row, loop)
        if guard:
            self.open(f"scf.if {guard} {{")
        for part, form in enumerate(buffer.copies):
            width = buffer.width
            if form in SCALAR_FORMS or form in LOOP_FORMS:
                width = 1
            for first in range(0, buffer.width, width):
                column = self.constant(part * buffer.width + first)
                if form in LOOP_FORMS:
                    self._loop_copy(number, place, buffer, loop, form, row, column)
                    break
                self._thread_copy(number, place, buffer, loop, form, row, column)
        if guard:
            if buffer.guard in ("each", "uniform"):
                self.else_()
                self.fill(number, place, buffer, loop)
            self.close()

    def fill(self, number: int, place: int, buffer: Buffer, loop: Loop) -> None:
        """Store the fill value in the thread's row."""
        kind = self.view_type(buffer, loop)
        for column in range(buffer.row):
            into = self.element(number, place, buffer, "%t", self.constant(column))
            value = self._fill_value(buffer, buffer.element)
            self.store("scalar", value, buffer.element, into, kind)

    def synchronise(self, loop: Loop) -> None:
        """What makes the copies of an iteration visible."""
        if any(f in ASYNC_FORMS for b in loop.buffers for f in b.copies):
            group = self.new(GROUP)
            self.emit(f"nvgpu.device_async_wait {group} {{numGroups = 0 : i32}}")
        if loop.is_shared:
            self.barrier()

    def _guard(self, number: int, buffer: Buffer, row: str, loop: Loop) -> str:
        """The condition of all copies of a buffer, "" if there is none."""
        if buffer.guard == "part":
            return self.new(f"arith.cmpi ult, %t, %c{self.threads // 2} : index")
        if buffer.guard in ("each", "stale"):
            return self._inside(row)
        if buffer.guard == "uniform":
            limit = self.constant(loop.lower + 2 * loop.step)
            index = self.index_of(number)
            return self.new(f"arith.cmpi ne, {index}, {limit} : index")
        return ""

    def _tile_copy(
        self, number: int, place: int, buffer: Buffer, loop: Loop, base: str
    ) -> None:
        tile = (
            f"memref<{self.threads}x{buffer.row}x{buffer.element}, "
            f"strided<[{buffer.row}, 1], offset: ?>>"
        )
        source = self.new(
            f"memref.subview %G{number}{place}[{base}, 0] [{self.threads}, "
            f"{buffer.row}] [1, 1] : {self.source_type(buffer, loop)} to {tile}"
        )
        target = self.target(number, place, buffer)
        kind = self.view_type(buffer, loop)
        form = buffer.copies[0]
        if form == "memref.copy":
            self.emit(f"memref.copy {source}, {target} : {tile} to {kind}")
        elif form == "linalg.copy":
            self.emit(f"linalg.copy ins({source} : {tile}) outs({target} : {kind})")
        else:
            identity = "affine_map<(i, j) -> (i, j)>"
            self.open(
                f"linalg.generic {{indexing_maps = [{identity}, {identity}], "
                'iterator_types = ["parallel", "parallel"]} '
                f"ins({source} : {tile}) outs({target} : {kind}) {{"
            )
            element = buffer.element
            self.emit(f"^bb0(%in: {element}, %out: {element}):")
            self.emit(f"  linalg.yield %in : {element}")
            self.close()

    def _loop_copy(
        self,
        number: int,
        place: int,
        buffer: Buffer,
        loop: Loop,
        form: str,
        row: str,
        column: str,
    ) -> None:
        """One that an inner loop makes, element by element."""
        index = self.fresh()
        if form == "scalar-forall":
            self.open(f"scf.forall ({index}) in ({buffer.width}) {{")
        else:
            end = self.constant(buffer.width)
            self.open(f"scf.for {index} = %c0 to {end} step %c1 {{")
        at = self.add(index, column)
        self._thread_copy(number, place, buffer, loop, "scalar", row, at)
        self.close()

    def _thread_copy(
        self,
        number: int,
        place: int,
        buffer: Buffer,
        loop: Loop,
        form: str,
        row: str,
        column: str,
    ) -> None:
        source, kind = f"%G{number}{place}", self.source_type(buffer, loop)
        target_kind = self.view_type(buffer, loop)
        into = self.element(number, place, buffer, "%t", column)
        from_ = f"{source}[{row}, {column}]"
        access, _, extra = form.partition("-")
        if access == "async":
            self._async_copy(buffer, form, row, from_, kind, into, target_kind)
            return
        if extra == "yield":
            value, value_type = self._chosen(buffer, access, row, from_, kind)
            self.store(access, value, value_type, into, target_kind)
            return
        if extra == "guarded":
            self.open(f"scf.if {self._inside(row)} {{")
        if extra == "masked":
            value, value_type = self._masked_load(buffer, row, from_, kind)
        else:
            value, value_type = self._computed(buffer, access, from_, kind)
        self.store(access, value, value_type, into, target_kind)
        if extra == "guarded":
            self.else_()
            value = self._fill_value(buffer, value_type)
            self.store(access, value, value_type, into, target_kind)
            self.close()

    def _computed(
        self, buffer: Buffer, access: str, from_: str, kind: str
    ) -> tuple[str, str]:
        """What is loaded, or computed from it, and its type."""
        value, loaded = self.load(access, buffer.width, buffer.source, from_, kind)
        stored = loaded.replace(buffer.source, buffer.element)
        if buffer.compute == "double":
            add = "addi" if buffer.element == "i32" else "addf"
            value = self.new(f"arith.{add} {value}, {value} : {stored}")
        elif buffer.compute == "cast":
            value = self.new(f"arith.extf {value} : {loaded} to {stored}")
        return value, stored

    def _chosen(
        self, buffer: Buffer, access: str, row: str, from_: str, kind: str
    ) -> tuple[str, str]:
        """What a branch yields: what is loaded, or the fill value."""
        stored = buffer.element
        if access != "scalar":
            stored = f"vector<{buffer.width}x{buffer.element}>"
        inside = self._inside(row)
        fill = self._fill_value(buffer, stored)
        result = self.fresh()
        self.open(f"{result} = scf.if {inside} -> ({stored}) {{")
        value, _ = self._computed(buffer, access, from_, kind)
        self.emit(f"scf.yield {value} : {stored}")
        self.else_()
        self.emit(f"scf.yield {fill} : {stored}")
        self.close()
        return result, stored

    def _fill_value(self, buffer: Buffer, kind: str) -> str:
        whole, real = _FILLS[buffer.fill]
        if buffer.element == "i32":
            number = whole
        elif isinstance(real, str):
            number = real
        else:
            number = real.get(buffer.element, "0xFFF0000000000000")
        number = f"dense<{number}>" if kind.startswith("vector") else number
        return self.new(f"arith.constant {number} : {kind}")

    def _masked_load(
        self, buffer: Buffer, row: str, from_: str, kind: str
    ) -> tuple[str, str]:
        """A load of the first few elements, or none, or all; the rest is zero."""
        counts, one = self.constant(buffer.width + 3), self.constant(1)
        rest = self.new(f"arith.remui {row}, {counts} : index")
        count = self.new(f"arith.subi {rest}, {one} : index")
        mask_type = f"vector<{buffer.width}xi1>"
        mask = self.new(f"vector.create_mask {count} : {mask_type}")
        loaded = f"vector<{buffer.width}x{buffer.element}>"
        number = "0" if buffer.element == "i32" else "0.0"
        zero = self.new(f"arith.constant dense<{number}> : {loaded}")
        value = self.new(
            f"vector.maskedload {from_}, {mask}, {zero} : {kind}, {mask_type}, "
            f"{loaded} into {loaded}"
        )
        return value, loaded

    def _inside(self, row: str) -> str:
        """Whether a source's row is to be read: true for some, false for others."""
        limit = self.constant(self.threads // 2 + 3)
        return self.new(f"arith.cmpi ult, {row}, {limit} : index")

    def _async_copy(
        self,
        buffer: Buffer,
        form: str,
        row: str,
        from_: str,
        kind: str,
        into: str,
        target_kind: str,
    ) -> None:
        read = ""
        if form == "async-guarded":
            width = self.constant(buffer.width)
            count = self.new(f"arith.select {self._inside(row)}, {width}, %c0 : index")
            read = f", {count}"
        self.new(
            f"nvgpu.device_async_copy {from_}, {into}, {buffer.width}{read} : "
            f"{kind} to {target_kind}"
        )
