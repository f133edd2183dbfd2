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
from alcop_mlir.torch.checks import name_of, users_place
from alcop_mlir.torch.shapes import Known

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
NODES = "graph node"
_NODE = re.compile(rf"{NODES}:(\d+):\d+")
_NODE_IN_TEXT = re.compile(rf'"{NODES}":(\d+):\d+')
_NODE_OF_ERROR = re.compile(rf'{NODES}"(?:, line |:)(\d+)')
# Ops of torch-mlir's that stand for loops which no kernel has.
_NO_KERNEL = {
    "tm_tensor.scan": "each element depends on the one before it, as in a running sum",
    "tm_tensor.scatter": "elements are written or added up at places that are computed",
    "tm_tensor.sort": "elements are sorted",
}
_ARGUMENT = re.compile(r"(%arg(\d+): [^%()]*?)( loc\([^()]*(?:\([^()]*\))?\))")


def text_of(
    module: torch.fx.GraphModule,
    names: Sequence[str],
    known: Known,
    updates: Mapping[int, int],
    weights: Collection[int],
) -> str:
    """The program, whose arguments are called `names`, "" for those without a name.

    updates: by argument that is updated in place the number of its value's output
    weights: numbers of the arguments that get the mark `alcop.weight`
    known: sizes, as `sizes.simplify` takes them
    Locations are places in a file `NODES`, whose lines are the graph's nodes.
    CompileError names the op that torch-mlir does not lower.
    """
    nodes = list(module.graph.nodes)
    traces = [node.stack_trace for node in nodes]
    message = ""
    found: Any = None
    try:
        for line, node in enumerate(nodes, 1):
            node.stack_trace = f'File "{NODES}", line {line}, in forward\n'
        found = _imported(module)
        _lower(found)
        _check_lowered(found)
        sizes.simplify(found, known)
        _check_views(found)
    except CompileError as error:
        message = str(error)
    finally:
        for node, trace in zip(nodes, traces, strict=True):
            node.stack_trace = trace
    if found is None or message:
        raise CompileError(with_names(message, nodes))
    text = found.operation.get_asm(enable_debug_info=True)
    return _described(text, names, updates, weights)


def at_places(text: str, nodes: Sequence[torch.fx.Node]) -> str:
    """`text` with lines of the user's program instead of `nodes`."""

    def place(found: re.Match[str]) -> str:
        known = users_place(nodes[int(found[1]) - 1])
        return f'"{known[1]}":{known[2]}:0' if known else "unknown"

    return _NODE_IN_TEXT.sub(place, text)


def with_names(message: str, nodes: Sequence[torch.fx.Node]) -> str:
    """`message` with names of ops, and lines of the program, instead of `nodes`."""
    return _NODE.sub(lambda found: name_of(nodes[int(found[1]) - 1]), message)


def _imported(module: torch.fx.GraphModule) -> Any:
    from torch_mlir import fx

    try:
        return fx.stateless_fx_import(module)
    except Exception as error:  # of many kinds, and all say: not this program
        raise CompileError(_reason(str(error))) from None


def _lower(module: Any) -> None:
    """Run torch-mlir's passes; CompileError with the first error, where it is."""
    passes: Any = importlib.import_module("torch_mlir.passmanager")
    with module.context:
        try:
            passes.PassManager.parse(_PIPELINE).run(module.operation)
        except Exception as error:
            first = next(iter(getattr(error, "error_diagnostics", ())), None)
            if first is None:
                raise CompileError(_reason(str(error))) from None
            raise CompileError(_reason(first.message, str(first.location))) from None


def _check_lowered(module: Any) -> None:
    """CompileError at an op of torch-mlir's own that is left."""
    left = _ops(module, ("tm_tensor.", "torch."))
    if left:
        why = _NO_KERNEL.get(left[0].name, left[0].name)
        raise CompileError(f"{_place(left[0])}: no kernel computes this op: {why}")


def _check_views(module: Any) -> None:
    """CompileError at a view by sizes that `sizes.simplify` cannot tell."""
    for view in _ops(module, ("tensor.reshape",)):
        kind = view.results[0].type
        if not kind.has_static_shape and any(True for _ in view.results[0].uses):
            raise CompileError(
                f"{_place(view)}: a view from {view.operands[0].type} to {kind}, whose "
                "sizes are not known to fit each other"
            )


def _ops(module: Any, names: tuple[str, ...]) -> list[Any]:
    """The ops whose names begin with one of these."""
    ir: Any = importlib.import_module("torch_mlir.ir")
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name.startswith(names):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _place(op: Any) -> str:
    return _node_at(str(op.location)) or op.name


def _reason(message: str, location: str = "") -> str:
    """What an error of torch-mlir's says, with the node that it is of."""
    node = _node_at(location) or _node_at(message)
    for pattern in _UNKNOWN:
        found = pattern.search(message)
        if found is not None:
            return f"{node or found[1]}: torch-mlir does not lower this op"
    what = f"{node}: torch-mlir does not lower this op here" if node else ""
    return f"{what or 'torch-mlir cannot import the graph'}: {message.strip()[:300]}"


def _node_at(location: str) -> str:
    """The line of `NODES` that a location, or an error, names; nothing if none."""
    found = _NODE_OF_ERROR.search(location)
    return f"{NODES}:{found[1]}:0" if found else ""


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
