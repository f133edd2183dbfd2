"""Compile ahead of time: a bundle of kernels, and the weights beside it.

folder/program.zip           what alcop_mlir.load loads, without torch or MLIR
folder/weights.safetensors   arguments of the program by name, bf16 as its bits
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import InputKind, OutputKind

from alcop_mlir import errors
from alcop_mlir.errors import CompileError, ConfigError
from alcop_mlir.frozen import frozen
from alcop_mlir.runtime.launch import Program
from alcop_mlir.torch.cache import compiled
from alcop_mlir.torch.decompositions import aten
from alcop_mlir.torch.graphs import Graph, graph_of
from alcop_mlir.torch.options import read
from alcop_mlir.torch.running import with_bits

_COPY: Any = torch.ops.aten.copy_.default
_UPDATES = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
PROGRAM, WEIGHTS = "program.zip", "weights.safetensors"


@frozen
class Exported:
    """A compiled program, and what its arguments that are weights are.

    weights: by the name of the argument, which is the name in the model's state
    """

    program: Program
    weights: dict[str, np.ndarray[Any, Any]]

    def save(self, folder: str | Path) -> None:
        """Write PROGRAM and WEIGHTS to `folder`, which is made. ConfigError if not."""
        safetensors = errors.optional(
            "safetensors.numpy", "storing weights needs safetensors", "torch"
        )
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            safetensors.save_file(self.weights, folder / WEIGHTS)
        except OSError as error:
            raise ConfigError(f"cannot write '{folder}': {error}") from None
        self.program.save(folder / PROGRAM)


def export(
    model: torch.nn.Module | torch.export.ExportedProgram,
    args: Sequence[Any] = (),
    dynamic_shapes: Any = None,
    **options: Any,
) -> Exported:
    """Compile a model, or what torch.export made of it, for inputs like `args`.

    args, dynamic_shapes: as torch.export.export takes them; not with its result
    options: those of torch.compile's `options`

    Weights are arguments of the program: `program(x=x, **weights)`. CompileError names
    the op that cannot be compiled, and why.
    """
    chosen = read(options)
    graph, weights = traced(model, args, dynamic_shapes)
    bundle = compiled(graph, chosen.for_device(graph.device), chosen.cache)
    return Exported(Program(bundle), weights)


def traced(
    model: torch.nn.Module | torch.export.ExportedProgram,
    args: Sequence[Any] = (),
    dynamic_shapes: Any = None,
) -> tuple[Graph, dict[str, np.ndarray[Any, Any]]]:
    """What `export` compiles, and the weights by the names of its arguments."""
    if isinstance(model, torch.export.ExportedProgram):
        if args or dynamic_shapes is not None:
            raise ConfigError("args and dynamic_shapes were given to torch.export")
        exported = model
    else:
        exported = torch.export.export(
            model, tuple(args), dynamic_shapes=dynamic_shapes
        )
    with torch.no_grad():
        exported = exported.run_decompositions(aten())
    module, names, weights = _arguments(exported)
    numbers = [number for number, name in enumerate(names) if name in weights]
    graph = graph_of(module, names, numbers, has_strides=False)
    if not graph.returned and not graph.updated:
        raise CompileError("nothing to compile: the model returns what it was given")
    return graph, weights


def _arguments(
    exported: torch.export.ExportedProgram,
) -> tuple[torch.fx.GraphModule, list[str], dict[str, np.ndarray[Any, Any]]]:
    """The graph without weights that nobody reads, names of arguments, weights."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(exported.graph, {}))
    updated = _copy_updates(graph, exported)
    names: list[str] = []
    weights: dict[str, np.ndarray[Any, Any]] = {}
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    inputs = exported.graph_signature.input_specs
    for node, one in zip(placeholders, inputs, strict=True):
        if one.kind == InputKind.USER_INPUT:
            names.append(getattr(one.arg, "name", ""))
        elif not node.users:
            graph.erase_node(node)
        else:
            assert one.target is not None  # all that is lifted has a name
            names.append(one.target)
            weight = _weight(exported, one.target)
            # What calls change is not the model's own.
            weight = weight.clone() if one.target in updated else weight
            weights[one.target] = array_of(weight)
    return torch.fx.GraphModule(exported.graph_module, graph), names, weights


def _copy_updates(
    graph: torch.fx.Graph, exported: torch.export.ExportedProgram
) -> set[Any]:
    """Write new values of inputs and buffers, which are named, by ops, instead of
    returning them.
    """
    signature = exported.graph_signature
    nodes = [node for node in graph.nodes if node.op == "placeholder"]
    given = zip(nodes, signature.input_specs, strict=True)
    # Buffers by their names in the model, inputs by those of their nodes.
    by_name: dict[str | None, Any]
    by_name = {one.target or one.arg.name: node for node, one in given}
    returned: list[Any] = []
    updated: set[Any] = set()
    output = graph.output_node()
    values: Any = output.args[0]
    for value, one in zip(values, signature.output_specs, strict=True):
        if one.kind == OutputKind.USER_OUTPUT:
            returned.append(value)
            continue
        if one.kind not in _UPDATES:
            raise CompileError(f"the model returns '{one.target}' as {one.kind.name}")
        with graph.inserting_before(output):
            copy = graph.call_function(_COPY, (by_name[one.target], value))
        copy.meta["val"] = value.meta["val"]
        updated.add(one.target)
    output.args = (tuple(returned),)
    return updated


def _weight(exported: torch.export.ExportedProgram, name: str) -> torch.Tensor:
    every: dict[str, Any] = {**exported.constants, **exported.state_dict}
    return every[name]


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The values of `tensor` as programs take them, see `with_bits`."""
    return with_bits(tensor.detach().cpu().contiguous()).numpy()
