"""Take weights of four bits out of their bytes in the contraction that reads them.

Before:  %low = linalg.generic ins(%p : tensor<64x64xi8>) { arith.andi %b, 15 }
         %high = linalg.generic ins(%p) { arith.shrsi %b, 4 ; arith.andi .., 15 }
         %q = tensor.collapse_shape (tensor.concat %low, %high)  : tensor<64x128xi8>
         %w = linalg.generic ins(%q, %scales : .., tensor<64x4xf16>) {
           arith.sitofp ; arith.mulf }                           // by groups of 32
         linalg.matmul ins(%x, %w) ..                            // W [n, k]
After:   %s = linalg.transpose ins(%scales : tensor<64x4xf16>) permutation = [1, 0]
         linalg.generic ins(%x, %p, %s) {
             maps (m, n, k) -> (m, k), (n, k floordiv 2), (k floordiv 32, n) }
         ^bb0(%a: f16, %byte: i8, %scale: f16, %c: f32):
           %q = (%byte >> 4 * (k & 1)) : i4       // as analysis.linalg.nibbles reads it
           %v = arith.uitofp %q : i4 to f16
           %w = arith.mulf %v, %scale : f16
           ... }                                   // as linalg.matmul had it

The contraction then copies the packed bytes, a quarter of what f16 would be, and
computes weights on fragments. Everything in between may be reshapes, transposes and
element-wise ops on a tensor of known sizes; `analysis.tensors.unpacking` follows them.
The low nibble comes first, and neighbours along K share a byte. Bytes with K along the
rows, [k / 2, n], are transposed first where they are weights (`alcop.weight`), which
alcop-prepare-weights does once. Other operands are single numbers, one number per
column, or one per column and group along K, where a group is a multiple of 16.

What else is unpacked is left unchanged, with a remark on the contraction.

Runs after alcop-fold-transposes, before alcop-prepare-weights, so that no unpacked
weights are kept. Reads `alcop.weight`; writes no attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.nibbles import GROUP_STEP, NIBBLE_BITS, PER_BYTE
from alcop_mlir.analysis.linalg.operand_transforms import (
    NoContraction,
    find_operand_transforms,
)
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.analysis.linalg.zero_fill import LONGEST_STEP_BYTES
from alcop_mlir.analysis.tensors.unpacking import (
    Computed,
    Digit,
    Element,
    Nibble,
    Value,
    elements_of,
    find_unpacking,
)
from alcop_mlir.analysis.tensors.weights import weights_of
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors, keep_marks

_FLOATS = ("f16", "bf16")
_WHOLE = LONGEST_STEP_BYTES // 2  # elements along K that no K step fills up with zeros
_EXACT = 128  # floats that are multiplied have all numbers up to twice this


class _No(Exception):
    """Why a contraction is left unchanged."""


@frozen
class SinkUnpacking(Pass):
    name = "alcop-sink-unpacking"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        if not walk(op, "tensor.concat"):  # only this puts the codes of a byte together
            return
        for one in list(walk(op, enter=lambda one: not one.name.startswith("linalg."))):
            view = linalg_view(one) if one.name.startswith("linalg.") else None
            is_top = one.parent.operation == op
            if view is None or not is_top or not _is_contraction(view):
                continue
            for number in (1, 0):
                if _sink(op, view, number):
                    break


def _is_contraction(view: LinalgView) -> bool:
    """Whether it is one of two tensors of floats, with one reduction."""
    is_one = (
        len(view.inputs) == 2
        and len(view.outputs) == 1
        and len(view.reductions) == 1
        and all(one.is_tensor for one in view.operands)
        and all(None not in one.loops for one in view.operands)
        and len({str(one.value.type.element_type) for one in view.inputs}) == 1
        and str(view.inputs[0].value.type.element_type) in _FLOATS
    )
    if not is_one:
        return False
    try:
        transforms = find_operand_transforms(view)
    except NoContraction:
        return False
    return not any(one.is_computed for one in transforms)


def _sink(function: ir.Operation, view: LinalgView, number: int) -> bool:
    """Whether input `number` is unpacked in the contraction now."""
    operand = view.inputs[number]
    if len(operand.loops) != 2 or not operand.value.type.has_static_shape:
        return False
    shape = operand.value.type.shape
    along = [
        (loop, extent)
        for loop, extent in zip(operand.loops, shape, strict=True)
        if loop is not None
    ]
    found = find_unpacking(operand.value, along)
    if found is None:
        return False
    try:
        with view.op.location, ir.InsertionPoint(view.op):
            _Sinking(function, view, number, dict(along)).run(found)
    except _No as no:
        diagnostics.remark(
            view.op,
            f"'{view.op.name}' does not unpack its weights of four bits itself: {no}",
        )
        return False
    return True


@frozen
class _Sinking:
    """One contraction, and the extents of the loops of its packed input."""

    function: Any
    view: LinalgView
    number: int
    extents: dict[int, int]

    @property
    def _k(self) -> int:
        return self.view.reductions[0]

    @property
    def _column(self) -> int:
        (loop,) = (one for one in self.extents if one != self._k)
        return loop

    def run(self, value: Value) -> None:
        """Replace the contraction; raises _No before anything is changed."""
        elements = list(dict.fromkeys(elements_of(value)))
        nibbles = [one for one in elements if isinstance(one, Nibble)]
        others = [one for one in elements if isinstance(one, Element)]
        if len(nibbles) != 1:
            raise _No(f"they are {len(nibbles)} packed tensors, expected one")
        (nibble,) = nibbles
        self._check(nibble)
        forms = [self._form(one) for one in others]
        is_across = self._is_across(nibble)
        packed = nibble.byte.tensor
        if is_across:
            packed = _transposed(packed)
        given = [
            packed,
            *(self._other(*one) for one in zip(others, forms, strict=True)),
        ]
        self._replace(value, [nibble, *others], given, forms)

    def _check(self, nibble: Nibble) -> None:
        if self.view.outputs[0].loops[-1] != self._column:
            raise _No("they are the rows of its result, expected the columns")
        k = self.extents[self._k]
        if k % _WHOLE:
            raise _No(f"K is {k}, expected a multiple of {_WHOLE}")
        if nibble.low != Digit(self._k, 1, PER_BYTE):
            raise _No("a byte holds no neighbours along K, expected 2j and 2j + 1")
        if nibble.offset is None:
            raise _No("the values of its codes are not 16 neighbouring numbers")

    def _is_across(self, nibble: Nibble) -> bool:
        """Whether K lies along the rows of the packed tensor."""
        k = (Digit(self._k, PER_BYTE, self.extents[self._k] // PER_BYTE),)
        column = (Digit(self._column, 1, self.extents[self._column]),)
        if nibble.byte.index == (column, k):
            return False
        if nibble.byte.index != (k, column):
            raise _No("its bytes are in another order, expected [n, k / 2]")
        arguments = self.function.regions[0].blocks[0].arguments
        if nibble.byte.tensor not in [arguments[n] for n in weights_of(self.function)]:
            raise _No(
                "its bytes have K along the rows, expected [n, k / 2] of what is no "
                "weight: they would be transposed in each call"
            )
        return True

    def _form(self, element: Element) -> int:
        """Elements of K that share one of the tensor's; 0 for all of them."""
        digits = [one for index in element.index for one in index]
        k = [one for one in digits if one.loop == self._k]
        n = [one for one in digits if one.loop == self._column]
        has_columns = n in ([], [Digit(self._column, 1, self.extents[self._column])])
        if not has_columns or any(len(index) > 1 for index in element.index):
            raise _No(f"{element.tensor.type} has another order than columns")
        if not k:
            return 0
        whole = len(k) == 1 and k[0].step * k[0].extent == self.extents[self._k]
        if not whole or not n or k[0].step % GROUP_STEP:
            raise _No(
                f"{element.tensor.type} is of no groups along K and columns, expected "
                f"groups of a multiple of {GROUP_STEP}"
            )
        return k[0].step

    def _other(self, element: Element, group: int) -> Any:
        """The tensor as the contraction reads it: [], [n], or [k / group, n]."""
        loops = [index[0].loop for index in element.index if index]
        given = _without_units(element)
        if group and loops != [self._k, self._column]:
            return _transposed(given)
        return given

    def _replace(
        self,
        value: Value,
        order: list[Element | Nibble],
        given: list[Any],
        forms: list[int],
    ) -> None:
        """Build the contraction on `given`, which `order` are elements of."""
        out = self.view.outputs[0]
        inputs = [one.value for one in self.view.inputs]
        maps = [one.map for one in self.view.inputs]
        own_maps = self._maps(given, forms)
        inputs[self.number], maps[self.number] = given[0], own_maps[0]
        inputs, maps = [*inputs, *given[1:]], [*maps, *own_maps[1:], out.map]
        made = generic_on_tensors(inputs, [out.value], maps, self.view.reductions)
        keep_marks(self.view.op, made.operation)
        kinds = [one.type.element_type for one in (*inputs, out.value)]
        places = [ir.Location.current] * len(kinds)
        block = made.regions[0].blocks.append(*kinds, arg_locs=places)
        with ir.InsertionPoint(block):
            self._multiply(block, value, order)
        self.view.op.results[0].replace_all_uses_with(made.results[0])
        edit.erase_unused([self.view.op])

    def _maps(self, given: list[Any], forms: list[int]) -> list[ir.AffineMap]:
        """The indexing maps of the packed tensor and of the others."""
        k, column = (ir.AffineExpr.get_dim(one) for one in (self._k, self._column))

        def shared(count: int) -> Any:
            return ir.AffineExpr.get_floor_div(k, ir.AffineExpr.get_constant(count))

        results = [[column, shared(PER_BYTE)]]
        for one, group in zip(given[1:], forms, strict=True):
            alone = [column][: one.type.rank]
            results.append([shared(group), column] if group else alone)
        return [ir.AffineMap.get(self.view.rank, 0, one) for one in results]

    def _multiply(
        self, block: ir.Block, value: Value, order: list[Element | Nibble]
    ) -> None:
        """The body of the contraction, with `value` for an element of its input."""
        arguments = list(block.arguments)
        known: dict[Any, Any] = dict(zip(order[1:], arguments[2:-1], strict=True))
        known[order[0]] = _nibble(arguments[self.number], self._k)
        inside: dict[Any, Any] = {
            one.argument: argument
            for one, argument in zip(self.view.inputs, arguments, strict=False)
        }
        inside[self.view.inputs[self.number].argument] = _computed(value, known)
        inside[self.view.outputs[0].argument] = arguments[-1]
        linalg.YieldOp(edit.inline(self.view.block, inside))


def _nibble(byte: ir.Value, k: int) -> Any:
    """The half of the byte that belongs to an iteration."""
    i8 = byte.type
    one, two = (arith.constant(i8, number) for number in (1, 2))
    number = arith.index_cast(i8, linalg.IndexOp(k).result)
    by = arith.shli(arith.andi(number, one), two)
    return arith.trunci(build.integer(NIBBLE_BITS), arith.shrui(byte, by))


def _computed(value: Value, known: dict[Any, Any]) -> Any:
    """The ops that compute `value`."""
    if isinstance(value, Nibble):
        return _extended(value, known[value])
    if isinstance(value, Element):
        return known[value]
    converted = _converted(value, known)
    if converted is not None:
        return converted
    operands = [_computed(one, known) for one in value.operands]
    inside = dict(zip(value.block.arguments, operands, strict=False))
    (result,) = edit.inline(value.block, inside)
    return result


def _extended(nibble: Nibble, code: ir.Value) -> Any:
    """The value of a code, as an integer of its type."""
    extend = arith.extsi if nibble.signed else arith.extui
    wide = extend(nibble.kind, code)
    if not nibble.offset:
        return wide
    return arith.addi(wide, arith.constant(nibble.kind, nibble.offset))


def _converted(value: Computed, known: dict[Any, Any]) -> Any | None:
    """A code as a float, where the body converts the value and does no more.

    The 16 numbers, and the sum, are exact in it.
    """
    ops = [op.operation for op in value.block.operations]
    nibble = value.operands[0]
    if len(ops) != 2 or not isinstance(nibble, Nibble):
        return None
    kind, argument = ops[0].results[0].type, value.block.arguments[0]
    if ops[0].name != "arith.sitofp" or ops[0].operands[0] != argument:
        return None
    if str(kind) not in (*_FLOATS, "f32") or abs(nibble.offset or 0) > _EXACT:
        return None
    code = known[nibble]
    number = arith.sitofp(kind, code) if nibble.signed else arith.uitofp(kind, code)
    if not nibble.offset:
        return number
    offset = ir.FloatAttr.get(kind, float(nibble.offset))
    return arith.addf(number, arith.constant(kind, offset))


def _transposed(given: ir.Value) -> Any:
    empty = tensor.empty(given.type.shape[::-1], given.type.element_type)
    made = linalg.transpose(given, outs=[empty], permutation=[1, 0])
    return made.operation.results[0]


def _without_units(element: Element) -> Any:
    """The tensor without dimensions of one element."""
    given = element.tensor
    kept = [number for number, index in enumerate(element.index) if index]
    if len(kept) == given.type.rank:
        return given
    groups: list[list[int]] = [[] for _ in kept]
    for number in range(given.type.rank):
        if groups:
            before = [place for place, one in enumerate(kept) if one <= number]
            groups[before[-1] if before else 0].append(number)
    shape = [given.type.shape[one] for one in kept]
    kind = ir.RankedTensorType.get(shape, given.type.element_type)
    return tensor.collapse_shape(kind, given, groups)
