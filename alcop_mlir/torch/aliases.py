"""Results that are views of arguments, or of other results: nothing is computed.

    return x[:, :n]    ->    x.as_strided([m, n], [k, 1], 0)

torch takes sizes, strides and offsets of such a result, and makes the view anew of what
the caller has: they have to be those of eager mode.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any

import torch

from alcop_mlir.frozen import frozen


@frozen
class View:
    """An output as a view of another tensor.

    base: number of the argument, or -1 - the number of the output, that it is a view of
    sizes, strides, offset: from the first element of the base; may be symbolic
    """

    base: int
    sizes: tuple[Any, ...]
    strides: tuple[Any, ...]
    offset: Any

    def of(self, base: torch.Tensor, value: Callable[[Any], int]) -> torch.Tensor:
        """The view of `base`. value: of a size that may be symbolic."""
        sizes, strides = (list(map(value, one)) for one in (self.sizes, self.strides))
        offset = base.storage_offset() + value(self.offset)
        return base.detach().as_strided(sizes, strides, offset)


def views(
    outputs: Collection[Any], placeholders: list[torch.fx.Node]
) -> dict[int, View]:
    """The outputs that are views, by their numbers."""
    found: dict[int, View] = {}
    every = list(outputs)
    for number, node in enumerate(every):
        base = node
        while isinstance(base, torch.fx.Node) and (source := _viewed(base)) is not None:
            base = source
            if base in every:
                break
        if base is node or not isinstance(base, torch.fx.Node):
            continue
        if base in placeholders:
            found[number] = _view(node, base, placeholders.index(base))
        elif base in every and every.index(base) not in found:
            found[number] = _view(node, base, -1 - every.index(base))
    return found


def _viewed(node: torch.fx.Node) -> torch.fx.Node | None:
    """What `node` is a view of; None if it is none."""
    if node.target is operator.getitem:
        source: Any = node.args[0]
        return _viewed(source)
    returns = getattr(getattr(node.target, "_schema", None), "returns", ())
    alias = returns[0].alias_info if returns else None
    if alias is None or alias.is_write:
        return None
    source = node.args[0]
    return source if isinstance(source, torch.fx.Node) else None


def _view(node: torch.fx.Node, base: torch.fx.Node, number: int) -> View:
    value, whole = node.meta["val"], base.meta["val"]
    offset = value.storage_offset() - whole.storage_offset()
    return View(number, tuple(value.shape), tuple(value.stride()), offset)
