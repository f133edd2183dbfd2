"""Which element-wise ops could be computed where their elements are looked up.

    %t = linalg.generic ins(%x, %m) .. { arith.subf }      // element-wise
    linalg.generic ins(%i) .. { tensor.extract %t[%row, %column] }

Of what is looked up, `why_not_computed` says why the op that makes it is not computed
there, of the elements that it reads. Changes nothing.
"""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.elementwise import Elementwise, elementwise_on_tensors
from alcop_mlir.analysis.linalg.view import LinalgView, view_of
from alcop_mlir.frozen import frozen

EXTRACT = "tensor.extract"
_MOST_FOLLOWED = 32  # tensors that are looked through


@frozen
class LookUp:
    """An element of what an element-wise op makes, read in the body of another one.

    extract: the op in the body
    maker:   the op that makes the tensor
    """

    extract: Any
    maker: Elementwise


def look_ups(reader: Any) -> list[LookUp]:
    """The elements that a `linalg.generic` on tensors looks up of element-wise ops."""
    found = []
    for extract in walk(reader, EXTRACT):
        op = defining_op(extract.operands[0])
        if op is None or not op.name.startswith("linalg."):
            continue
        maker = elementwise_on_tensors(op, with_index=True)
        if maker is not None:
            found.append(LookUp(extract, maker))
    return found


def why_not_computed(found: LookUp, overwritten: set[Any]) -> str | None:
    """Why the element is read, and not computed; None where it could be.

    overwritten: tensors that may be overwritten in place
    """
    maker = found.maker
    if maker.reads_output:
        return "it is computed from what its output held before"
    if any(one.value in overwritten for one in maker.reads):
        return "what it reads is overwritten in place, and would be copied before"
    if _is_epilogue(maker):
        return "a contraction can compute it, and stores no other result then"
    reader = view_of(found.extract.parent)
    if _iterations(reader) is None or _iterations(maker) is None:
        return "sizes are known at run time only"
    if (_iterations(reader) or 0) > (_iterations(maker) or 0):
        return (
            f"{_iterations(reader)} elements are looked up, of {_iterations(maker)}: "
            "some would be computed several times"
        )
    return None


def _is_epilogue(maker: Elementwise) -> bool:
    """Whether it is computed of contractions and of arguments alone.

    What needs a reduction of a row as well is no epilogue of what it reduces.
    """
    found, seen, pending = False, set[Any](), [one.value for one in maker.reads]
    while pending and len(seen) < _MOST_FOLLOWED:
        tensor = pending.pop()
        op = defining_op(tensor)
        if (
            op is None
            or tensor in seen
            or not op.name.startswith(("linalg.", "tensor."))
        ):
            continue
        seen.add(tensor)
        if op.name.startswith("tensor."):
            pending += op.operands
            continue
        element = elementwise_on_tensors(op, with_index=True)
        if element is not None:
            pending += [one.value for one in element.reads]
        elif len(view_of(op).inputs) > 1 and view_of(op).reductions:
            found = True
        else:
            return False
    return found


def _iterations(view: LinalgView) -> int | None:
    sizes = [view.static_size(loop) for loop in range(view.rank)]
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None
