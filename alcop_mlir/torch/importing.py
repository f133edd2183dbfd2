"""A graph of aten ops as MLIR text, by torch-mlir: linalg on tensors, one function.

    def forward(weight, x):                    func.func @main(%arg0: tensor<..>
        return aten.mm(x, weight)        ->        loc("weight"), %arg1: ..) -> ..
                                                 linalg.matmul ..  loc("model.py":12:0)

What torch-mlir does not lower is refused, with the op's name and where it was called.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch

from alcop_mlir.errors import CompileError
from alcop_mlir.torch import sizes

# torch-mlir's own two steps, of which the first decomposes.
_PIPELINE = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline,"
    "torch-backend-to-linalg-on-tensors-backend-pipeline)"
)
# Where it names an op that it does not know.
_UNKNOWN = (
    re.compile(r'name = "torch\.([\w.]+)"'),
    re.compile(r"operation '(torch\.[\w.]+)'"),
    re.compile(r"(\w+\.\w+\.?\w*)' op"),
    re.compile(r"([Hh]igher-order operation '\w+')"),
)
_ARGUMENT = re.compile(r"(%arg(\d+): [^%()]*?)( loc\([^()]*(?:\([^()]*\))?\))")


def text_of(
    module: torch.fx.GraphModule,
    names: Sequence[str],
    same: Sequence[sizes.Pair] | None,
    updates: Mapping[int, int],
    weights: Collection[int],
) -> str:
    """The program, whose arguments are called `names`, "" for those without a name.

    updates: by argument that is updated in place the number of its value's output
    weights: numbers of the arguments that get the mark `alcop.weight`
    same: as `sizes.simplify` takes it
    CompileError names the op that torch-mlir does not lower.
    """
    from torch_mlir import fx

    try:
        found = fx.stateless_fx_import(module)
    except Exception as error:  # of many kinds, and all say: not this program
        raise CompileError(_reason(str(error))) from None
    _lower(found)
    _check_lowered(found)
    sizes.simplify(found, same)
    text = found.operation.get_asm(enable_debug_info=True)
    return _described(text, names, updates, weights)


def _lower(module: Any) -> None:
    """Run torch-mlir's passes; CompileError with the first error, where it is."""
    passes: Any = importlib.import_module("torch_mlir.passmanager")
    with module.context:
        try:
            passes.PassManager.parse(_PIPELINE).run(module.operation)
        except Exception as error:
            first = next(iter(getattr(error, "error_diagnostics", ())), None)
            message = str(error) if first is None else str(first.message)
            place = "" if first is None else _place(str(first.location))
            raise CompileError(_reason(message, place)) from None


def _place(location: str) -> str:
    """` (file.py:12)` of an MLIR location; nothing if it has none."""
    found = re.search(r'"(.+?\.py)":(\d+)', location)
    return f" ({found[1]}:{found[2]})" if found else ""


def _check_lowered(module: Any) -> None:
    """CompileError at an op of torch-mlir's own that is left."""
    ir: Any = importlib.import_module("torch_mlir.ir")
    left: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name.startswith(("tm_tensor.", "torch.")):
            left.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if left:
        place = _place(str(left[0].location))
        raise CompileError(f"{left[0].name}{place}: no kernel computes this op")


def _reason(message: str, place: str = "") -> str:
    for pattern in _UNKNOWN:
        found = pattern.search(message)
        if found is not None:
            return f"{found[1]}{place}: torch-mlir does not lower this op"
    return f"torch-mlir cannot import the graph{place}: {message.strip()[:300]}"


def _described(
    text: str,
    names: Sequence[str],
    updates: Mapping[int, int],
    weights: Collection[int],
) -> str:
    """`text` with `names` as the locations of `main`'s arguments, and what they are."""
    begin = text.index("func.func @main(")
    end = text.index("{", begin)

    def argument(found: re.Match[str]) -> str:
        number = int(found[2])
        place = f' loc("{names[number]}")' if names[number] else found[3]
        marks = ["alcop.weight"] if number in weights else []
        if number in updates:
            marks.append(f"alcop.in_place = {updates[number]} : i64")
        return found[1] + (f" {{{', '.join(marks)}}}" if marks else "") + place

    return text[:begin] + _ARGUMENT.sub(argument, text[begin:end]) + text[end:]
