"""The MLIR text of a case: a contraction with operand transforms and epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sweep_bodies import (
    Stage,
    converted,
    dequantised,
    epilogue,
    multiply_and_add,
    positive,
    result_type,
)
from sweep_cases import Case
from sweep_shapes import Shape, shape


@dataclass(frozen=True)
class Array:
    """A value of the program: its loops and the type of its elements.

    loops:  or its shape, where that is of no loops
    layout: as its type ends, where it does not follow from the shape
    """

    name: str
    loops: str
    dtype: str
    layout: str = ""


@dataclass(frozen=True)
class Source:
    """A module with the one function `sweep`; the loops of its arrays, in order."""

    text: str
    loops: tuple[str, ...]


def source(case: Case) -> Source:
    """The program of the case."""
    return _Program(case, shape(case)).source()


class _Program:
    """Writes a function on memrefs or on tensors, line by line."""

    def __init__(self, case: Case, shape: Shape):
        self.case, self.shape = case, shape
        self.word = "tensor" if case.on_tensors else "memref"
        self.arguments: list[Array] = []
        self.lines: list[str] = []

    def source(self) -> Source:
        result = self._write()
        returns = f"-> {self.type(result)}" if self.case.on_tensors else ""
        given = f"{result.name} : {self.type(result)}" if self.case.on_tensors else ""
        promise = f" {{alcop.row_alignment = {self.shape.promise} : i64}}"
        arguments = ", ".join(
            f"{array.name}: {self.type(array)}"
            + (promise if self.shape.promise and array.loops else "")
            for array in self.arguments
        )
        body = "\n".join(f"  {line}" for line in [*self._sizes(), *self.lines])
        head = f"func.func @sweep({arguments}) {returns}"
        loops = [array.loops for array in self.arguments]
        return Source(
            f"{head} {{\n{body}\n  return {given}\n}}\n",
            (*loops, result.loops) if self.case.on_tensors else tuple(loops),
        )

    def _write(self) -> Array:
        case, out = self.case, self.shape.out
        lhs, rhs, stages = self._lhs(), self._rhs(), epilogue(case, out)
        if not stages:
            return self.contraction(lhs, rhs, self._initial(case.types[1]))
        make = partial(self.argument, "T") if case.fusion == "kept" else self.new
        value = self.contraction(lhs, rhs, self.zero(make(out, result_type(case))))
        for stage in stages[:-1]:
            value = self.map(value, stage)
        last = stages[-1]
        output = self.argument("C", out, last.dtype)
        return self.map(value, last, output)

    def _lhs(self) -> Array:
        """A, transformed where the case says so."""
        kind, fusion = self.case.kind, self.case.fusion
        if fusion in ("convert lhs", "both"):
            given = "f16" if kind == "f32" else "f32"
            array = self.argument("A", self.shape.lhs, given)
            return self.map(array, converted(given, kind))
        array = self.argument("A", self.shape.lhs, kind)
        return self.map(array, positive(kind)) if fusion == "relu lhs" else array

    def _rhs(self) -> Array:
        """B, transformed where the case says so."""
        kind = self.case.kind
        if self.case.fusion in ("dequantise rhs", "both"):
            array = self.argument("B", self.shape.rhs, "i8")
            return self.map(array, dequantised(kind))
        return self.argument("B", self.shape.rhs, kind)

    def _initial(self, dtype: str) -> Array:
        """What the accumulators start from."""
        output = self.argument("C", self.shape.out, dtype)
        if self.case.fusion == "bias start":
            bias = self.argument("P", "n", dtype)
            return self._generic([bias], output, [f"yield %x : {dtype}"])
        if self.case.fusion == "copy":
            other = self.argument("D", self.shape.out, dtype)
            if self.case.on_tensors:
                return other
            kind, target = self.type(other), self.type(output)
            self.lines.append(f"memref.copy %D, %C : {kind} to {target}")
        return output if self.case.fusion in ("read", "copy") else self.zero(output)

    def argument(self, name: str, loops: str, dtype: str) -> Array:
        """An argument; a part of one, where the case says so."""
        shape = self.shape
        if len(loops) != 2 or not shape.pitch:
            return self._given(Array(f"%{name}", loops, dtype))
        columns = shape.sizes[0][loops[1]] + shape.pitch
        strides = f"strided<[{'?' if shape.has_open_strides else columns}, 1]"
        if shape.offset is None:
            return self._given(Array(f"%{name}", loops, dtype, f", {strides}>"))
        rows = shape.sizes[0][loops[0]] + 1
        whole = self._given(Array(f"%{name}_whole", f"{rows}x{columns}", dtype))
        strides += f", offset: {columns + shape.offset}>"
        part = Array(f"%{name}", loops, dtype, f", {strides}")
        self.lines.append(
            f"{part.name} = memref.subview {whole.name}[1, {shape.offset}] "
            f"[{rows - 1}, {columns - shape.pitch}] [1, 1] "
            f": {self.type(whole)} to {self.type(part)}"
        )
        return part

    def _given(self, array: Array) -> Array:
        self.arguments.append(array)
        return array

    def new(self, loops: str, dtype: str) -> Array:
        """An intermediate buffer, or an empty tensor."""
        array = Array(f"%t{len(self.lines)}", loops, dtype)
        sizes = ", ".join(
            f"%size_{loop}" for loop in loops if loop in self.shape.dynamic
        )
        make = "tensor.empty" if self.case.on_tensors else "memref.alloc"
        self.lines.append(f"{array.name} = {make}({sizes}) : {self.type(array)}")
        return array

    def zero(self, array: Array) -> Array:
        zero = "0" if array.dtype.startswith("i") else "0.0"
        name = f"%zero{len(self.lines)}"
        self.lines.append(f"{name} = arith.constant {zero} : {array.dtype}")
        op = f"linalg.fill ins({name} : {array.dtype}) outs({array.name} : "
        return self._op(f"{op}{self.type(array)})", array)

    def contraction(self, lhs: Array, rhs: Array, output: Array) -> Array:
        return self._generic(
            [lhs, rhs], output, multiply_and_add(self.case, output.dtype)
        )

    def map(self, array: Array, stage: Stage, output: Array | None = None) -> Array:
        inputs = [array]
        if stage.extra is not None:
            inputs.append(self.argument(f"P{len(self.lines)}", *stage.extra))
        output = output or self.new(array.loops, stage.dtype)
        return self._generic(
            inputs, output, [*stage.lines, f"yield %y : {stage.dtype}"]
        )

    def _generic(
        self, inputs: Sequence[Array], output: Array, body: Sequence[str]
    ) -> Array:
        used = [*inputs, output]
        loops = [i for i in "bmnk" if any(i in array.loops for array in used)]
        maps = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(array.loops)})>"
            for array in used
        )
        kinds = ", ".join(
            '"parallel"' if loop in output.loops else '"reduction"' for loop in loops
        )
        names = ("%x", "%p", "%o") if len(inputs) == 2 else ("%x", "%o")
        block = ", ".join(
            f"{name}: {array.dtype}" for name, array in zip(names, used, strict=True)
        )
        types = ", ".join(self.type(array) for array in inputs)
        given = ", ".join(array.name for array in inputs)
        *steps, last = body
        lines = "\n    ".join([f"^body({block}):", *steps, f"linalg.{last}"])
        op = (
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
            f"ins({given} : {types}) outs({output.name} : {self.type(output)}) {{\n"
            f"    {lines}\n  }}"
        )
        return self._op(op, output)

    def _op(self, op: str, output: Array) -> Array:
        """Write an op; its result on tensors is another value."""
        if not self.case.on_tensors:
            self.lines.append(op)
            return output
        result = Array(f"%r{len(self.lines)}", output.loops, output.dtype)
        self.lines.append(f"{result.name} = {op} -> {self.type(output)}")
        return result

    def type(self, array: Array) -> str:
        sizes = self.shape.sizes[0]
        shape = array.loops
        if shape.isalpha():
            numbers = [
                "?" if loop in self.shape.dynamic else str(sizes[loop])
                for loop in shape
            ]
            shape = "x".join(numbers)
        shape = f"{shape}x" if shape else ""
        return f"{self.word}<{shape}{array.dtype}{array.layout}>"

    def _sizes(self) -> list[str]:
        """The lines that get unknown sizes from the arguments."""
        lines = []
        for loop in self.shape.dynamic:
            for array in self.arguments:
                if loop in array.loops:
                    place = array.loops.index(loop)
                    lines += [
                        f"%place_{loop} = arith.constant {place} : index",
                        f"%size_{loop} = {self.word}.dim {array.name}, %place_{loop} "
                        f": {self.type(array)}",
                    ]
                    break
        return lines
