"""`torch.compile(model, backend="alcop", options={...})`.

    Dynamo's graph -> our composites -> AOTAutograd -> graph of aten ops -> bundle

torch finds the backend by the entry point `torch_dynamo_backends`. A graph that cannot
be compiled runs as torch runs it, after one warning that names the op and the reason;
with `fullgraph=True` that is an error. The graph of a backward pass is tried likewise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch.nn.attention import SDPBackend, sdpa_kernel

from alcop_mlir.errors import AlcopError
from alcop_mlir.runtime.launch import Program
from alcop_mlir.torch.cache import compiled
from alcop_mlir.torch.decompositions import aten, with_composites
from alcop_mlir.torch.graphs import graph_of
from alcop_mlir.torch.options import Options, read
from alcop_mlir.torch.running import Call


def alcop(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """What runs `module`, a graph of Dynamo's. ConfigError for wrong `options`."""
    chosen, strict = read(options), _is_full_graph()
    backend = aot_autograd(
        fw_compiler=partial(_compiled, chosen),
        inference_compiler=partial(_inference, chosen, module),
        bw_compiler=partial(_backward, chosen, strict),
        decompositions=aten(),
        keep_inference_input_mutations=True,
    )
    try:
        # torch's own kernels of attention keep, for the backward pass, what only they
        # compute; graphs of aten ops have all of it as matmuls and a softmax.
        with sdpa_kernel(SDPBackend.MATH):
            return backend(with_composites(module), inputs)
    except AlcopError as error:
        if strict:
            raise
        _warn(error, "forward")
        return module.forward


def _inference(
    options: Options,
    given: torch.fx.GraphModule,
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
) -> Call:
    """The same with weights: what Dynamo knows to stay where it is in all calls.

    given: Dynamo's graph, whose arguments AOTAutograd keeps, but for equal ones
    """
    placeholders = given.graph.find_nodes(op="placeholder")
    weights = [
        number
        for number, node in enumerate(placeholders)
        if node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
    ]
    is_same = len(placeholders) == len(inputs)
    return _compiled(options, module, inputs, weights if is_same else ())


def _compiled(
    options: Options,
    module: torch.fx.GraphModule,
    _: Sequence[Any],
    weights: Collection[int] = (),
) -> Call:
    """A graph of aten ops, compiled. Raises AlcopErrors."""
    graph = graph_of(module, weights=weights)
    if not graph.returned and not graph.updated:
        return Call(None, graph)
    bundle = compiled(graph, options.for_device(graph.device), options.cache)
    return Call(Program(bundle), graph)


def _backward(
    options: Options, strict: bool, module: torch.fx.GraphModule, inputs: Sequence[Any]
) -> Callable[..., Any]:
    """The same of a backward pass, which falls back by itself."""
    try:
        return _compiled(options, module, inputs)
    except AlcopError as error:
        if strict:
            raise
        _warn(error, "backward")
        return make_boxed_func(module.forward)


def _warn(error: AlcopError, which: str) -> None:
    warnings.warn(
        f"alcop: a {which} graph runs in eager mode: {error}",
        RuntimeWarning,
        stacklevel=3,
    )


def _is_full_graph() -> bool:
    """Whether torch.compile was given `fullgraph=True`, which no backend is told."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    try:
        return bool(InstructionTranslator.current_tx().one_graph)
    except AttributeError:  # called by other means than torch.compile
        return False
