"""Callables of a bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from alcop_mlir import extents
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.arrays import Constant, Intermediate, Parameter
from alcop_mlir.manifest.kernels import AtMost, Kernel, Launch
from alcop_mlir.reference import steps
from alcop_mlir.reference.steps import Step


@frozen
class Prepare:
    """What runs once per weights, before the first call with them.

    function: the name of another function of the bundle
    weights:  parameters of the function prepared for, which that one takes, in its
              order of parameters
    arrays:   what it makes: its outputs, which follow the weights
    """

    function: str
    weights: tuple[str, ...]
    arrays: tuple[Intermediate, ...]


@frozen
class Function:
    """One callable of a bundle: does its launches in order.

    reference:     what it computes, for checking; empty where that is not known
    intermediates: buffers that the kernels use besides the parameters, for one call
    checks:        conditions under which no kernel accesses an array out of bounds, in
                   any variant; those of one variant are its own
    constants:     arrays that the kernels or the reference read, whose contents the
                   bundle holds
    """

    name: str
    parameters: tuple[Parameter, ...]
    launches: tuple[Launch, ...]
    reference: tuple[Step, ...] = ()
    intermediates: tuple[Intermediate, ...] = ()
    checks: tuple[AtMost, ...] = ()
    constants: tuple[Constant, ...] = ()
    prepare: Prepare | None = None

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of all launches, of all variants."""
        return tuple(kernel for launch in self.launches for kernel in launch.kernels)


def with_sizes(function: Function, sizes: Mapping[str, int]) -> Function:
    """`function` for arrays of these sizes; other sizes keep their names."""
    return replace(
        function,
        parameters=tuple(
            replace(
                one,
                shape=steps.known(one.shape, sizes),
                strides=one.strides and steps.known(one.strides, sizes),
            )
            for one in function.parameters
        ),
        reference=tuple(steps.with_sizes(step, sizes) for step in function.reference),
        intermediates=tuple(
            replace(one, shape=extents.known(one.shape, sizes))
            for one in function.intermediates
        ),
    )
