"""What is made of a chain's last contraction, and where it lies.

Its result goes through conversions, element-wise ops of its own, transposes and
reshapes; as far as it is used by one of these alone, the chain writes what that makes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.chains.elements import FLOAT, Element
from alcop_mlir.analysis.chains.following import Follower, body_of
from alcop_mlir.analysis.chains.indices import (
    Indices,
    NotFollowedError,
    SplitLoop,
    result_of_reshape,
)
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


@frozen
class Result:
    """The tensor that a chain makes.

    value:   it, at present made by other ops
    indices: of its dimensions
    element: what is written, in f32 where it is a float
    """

    value: Any
    indices: Indices
    element: Element


def found_result(
    op: ir.Operation, indices: Indices, element: Element, follower: Follower
) -> Result:
    """What is made of the result of a contraction, as far as the chain can make it.

    Tile code writes neighbours along the columns of the values: what has others as
    neighbours is followed, but not written. SplitLoop where a loop of the batch has to
    be split; NotFollowedError where nothing can be written.
    """
    found: Result | None = Result(op.results[0], indices, element)
    written = None
    while found is not None:
        if found.indices[-1][-1:] == follower.kept[-1:]:
            written = found
        found = _next(found, follower)
    if written is None:
        raise NotFollowedError("neighbours in its result are of several rows")
    return written


def _next(found: Result, follower: Follower) -> Result | None:
    users = {use.owner.operation for use in found.value.uses}
    if len(users) != 1:
        return None
    (user,) = users
    try:
        reshaped = result_of_reshape(user, found.indices, follower.extents)
    except SplitLoop as wanted:
        if wanted.loop in follower.kept:
            return None
        raise
    except NotFollowedError:
        return None
    if reshaped is not None:
        return Result(user.results[0], reshaped, found.element)
    view = linalg_view(user)
    if view is None or not _is_own(view, found.value):
        return None
    (output,) = view.outputs
    source = view.inputs[0]
    given = dict(zip(source.loops, found.indices, strict=True))
    indices = tuple(given[loop] for loop in output.loops)
    try:
        made = body_of(follower, view, indices, found.value, found.element)
    except NotFollowedError:
        return None
    if made.type != FLOAT:
        return None
    return Result(user.results[0], indices, made)


def _is_own(view: LinalgView, value: ir.Value) -> bool:
    """Whether it goes over the elements of `value` alone, each once."""
    return (
        len(view.outputs) == 1
        and view.outputs[0].is_tensor
        and len(view.inputs) == 1
        and view.inputs[0].value == value
        and all(one.is_permutation for one in view.operands)
        and not view.reductions
    )
