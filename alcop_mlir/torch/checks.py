"""What no program has: kinds of numbers, random ones, sizes that only running tells.

CompileErrors name the op, and the line of the user's program that called it.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch._ops import HigherOrderOperator
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from alcop_mlir.errors import CompileError

_DTYPES = (
    torch.bool, torch.int8, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.float8_e4m3fn, torch.float8_e5m2,
)  # fmt: skip
_PLACE = re.compile(r'File "(.+)", line (\d+)')
_TORCH = str(Path(torch.__file__).parent)


def check(module: torch.fx.GraphModule) -> None:
    """CompileError where an array is of a kind, or somewhere, that no program has."""
    for node in module.graph.nodes:
        if isinstance(node.target, HigherOrderOperator):
            raise CompileError(
                f"{name_of(node)}: an op that is no function of arrays, as a "
                "branch or a loop, or one whose effects have an order"
            )
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise CompileError(
                f"{name_of(node)}: random numbers are drawn by torch, of its own state"
            )
        for value in _values(node):
            _check_kind(node, value)
    _check_devices(module.graph)


def _check_kind(node: torch.fx.Node, value: torch.Tensor) -> None:
    if value.dtype not in _DTYPES:
        kind = "complex" if value.dtype.is_complex else "of another kind"
        raise CompileError(
            f"{name_of(node)}: numbers of {value.dtype} are {kind}, expected floats, "
            "integers or booleans"
        )
    if value.layout != torch.strided:
        raise CompileError(f"{name_of(node)}: {value.layout} is no plain array")
    if free_unbacked_symbols(value):
        raise CompileError(f"{name_of(node)}: its size is known only when it has run")


def _check_devices(graph: torch.fx.Graph) -> None:
    """CompileError unless arguments and results are on one device."""
    devices: dict[torch.device, str] = {}
    results = graph.output_node().all_input_nodes
    for node in (*graph.find_nodes(op="placeholder"), *results):
        for value in _values(node):
            devices.setdefault(value.device, name_of(node))
    if len(devices) > 1:
        found = ", ".join(f"{name} on {where}" for where, name in devices.items())
        raise CompileError(f"arguments and results on several devices: {found}")


def check_sizes(graph: torch.fx.Graph) -> None:
    """CompileError where an array has no elements: torch-mlir divides by its sizes."""
    for node in graph.nodes:
        for value in _values(node):
            if any(type(size) is int and size == 0 for size in value.shape):
                raise CompileError(
                    f"{name_of(node)}: an array without elements, of shape "
                    f"{tuple(value.shape)}"
                )


def name_of(node: torch.fx.Node) -> str:
    """The op of a node, and the line of the user's program that called it."""
    called = f"argument '{node.name}'" if node.op == "placeholder" else str(node.target)
    place = users_place(node)
    return called + (f" ({place[1]}:{place[2]})" if place else "")


def users_place(node: torch.fx.Node) -> re.Match[str] | None:
    """The innermost place that led to `node` and is not torch's own."""
    places = list(_PLACE.finditer(node.stack_trace or ""))
    users = [one for one in places if not one[1].startswith(_TORCH)]
    return (users or places or [None])[-1]


def _values(node: torch.fx.Node) -> list[torch.Tensor]:
    value = node.meta.get("val")
    every = value if isinstance(value, list | tuple) else [value]
    return [one for one in every if isinstance(one, torch.Tensor)]
