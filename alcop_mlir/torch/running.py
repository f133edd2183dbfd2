"""Calls of a compiled graph with torch's tensors, in place: nothing is copied.

Tensors in main memory run on the emulator as NumPy's views of them, those on a GPU by
CUDA, on torch's current stream. Results are torch's own, and what is updated is so in
place. Only an argument that is not contiguous, or not at a multiple of 16 bytes, is
copied first, and back where it is updated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from alcop_mlir.runtime.arrays import ALIGNMENT
from alcop_mlir.runtime.launch import Program
from alcop_mlir.torch.graphs import Graph

_BITS = {
    torch.bfloat16: torch.uint16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e5m2: torch.uint8,
}


class Call:
    """A compiled graph, called as AOTAutograd does: a list that is emptied."""

    def __init__(self, program: Program | None, graph: Graph):
        self.program, self._graph = program, graph
        self._weights = _Weights()
        self._boxed_call = True  # what torch wraps copies attributes of the object

    def __call__(self, given: list[Any]) -> list[Any]:
        """The graph's outputs. Raises LaunchError and EmulationError."""
        arguments = list(given)
        given.clear()
        made = self._graph.empty_results(arguments)
        if self.program is not None:
            arrays = [arguments[number] for number in self._graph.arguments]
            arrays += self._graph.sized(arguments)
            weights = [arrays[number] for number in self._graph.weights]
            prepared = self._weights.prepared(self.program, arrays, weights)
            run(self.program, arrays, made, prepared, self._graph.updated)
        return self._graph.outputs(arguments, made)


class _Weights:
    """What a program makes of its weights, kept as long as they are the same."""

    def __init__(self) -> None:
        # The tensors themselves, so that no others come to lie where they were.
        self._known: list[torch.Tensor] = []
        self._state: object = None
        self._prepared: Sequence[Any] = ()

    def prepared(
        self,
        program: Program,
        arguments: Sequence[torch.Tensor],
        weights: Sequence[torch.Tensor],
    ) -> Sequence[Any]:
        """What `program` makes of `weights`, which are among its arguments."""
        if program.function.prepare is None:
            return ()
        state = _state(weights)
        if state is None or state != self._state:
            ready = [_ready(one) for one in arguments]
            views = [_view(one) for one in ready]
            self._prepared = program.prepare(*views, stream=_stream(arguments[0]))
            self._known, self._state = list(weights), state
        return self._prepared


def _state(weights: Sequence[torch.Tensor]) -> object:
    """Where the weights are, and how often they were written; None if not known.

    With the stream that orders what is made of them before what reads it.
    """
    if any(one.is_inference() for one in weights):  # has no version
        return None
    stream = _stream(weights[0])
    place = None if stream is None else stream.cuda_stream
    return place, [(one.data_ptr(), one._version) for one in weights]


def run(
    program: Program,
    arguments: Sequence[torch.Tensor],
    results: Sequence[torch.Tensor],
    prepared: Sequence[Any] = (),
    updated: Sequence[int] = (),
) -> None:
    """Let `program` write `results`, and the arguments with the numbers `updated`."""
    ready = [_ready(one) for one in arguments]
    # Views are made of `ready`, which keeps memory until the kernels are enqueued.
    views = [_view(one) for one in (*ready, *results)]
    (first, *_) = (*results, *arguments)
    program(*views, prepared=prepared, stream=_stream(first))
    for number in updated:
        if ready[number].data_ptr() != arguments[number].data_ptr():
            arguments[number].detach().copy_(ready[number])


def _stream(tensor: torch.Tensor) -> Any:
    """torch's current stream where `tensor` is; None in main memory."""
    return torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None


def _ready(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`, or a copy where kernels could not read it in place."""
    tensor = tensor.detach().contiguous()
    return tensor.clone() if tensor.data_ptr() % ALIGNMENT else tensor


def with_bits(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`, or its bits where NumPy has no such type: bf16, f8."""
    return tensor.view(_BITS.get(tensor.dtype, tensor.dtype))


def _view(tensor: torch.Tensor) -> Any:
    """`tensor` as launches take it: by its bits where libraries lack the type."""
    tensor = with_bits(tensor)
    return tensor if tensor.is_cuda else tensor.numpy()
