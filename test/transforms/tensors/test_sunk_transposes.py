"""Random chains of views, before and after alcop-sink-transposes, against NumPy."""

import math

import numpy as np
import pytest

from alcop_mlir.analysis.tensors.row_orders import COLLAPSE, EXPAND, SLICE, TRANSPOSE
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.pipelines.driver import run_pipeline

PIPELINE = "builtin.module(func.func(alcop-sink-transposes,canonicalize))"


def _type(shape):
    return f"tensor<{''.join(f'{size}x' for size in shape)}i32>"


def _drawn(rng):
    """A function of views, each a random step on the one before."""
    shape = [int(size) for size in rng.choice([1, 1, 2, 3, 4], 4)]
    first, lines, name = _type(shape), [], "%v"
    for number in range(int(rng.integers(3, 9))):
        at, name = name, f"%v{number}"
        kind, before = rng.integers(4), _type(shape)
        if kind == 0:
            order = [int(place) for place in rng.permutation(len(shape))]
            shape = [shape[place] for place in order]
            lines.append(f"{name}e = tensor.empty() : {_type(shape)}")
            lines.append(
                f"{name} = linalg.transpose ins({at} : {before}) "
                f"outs({name}e : {_type(shape)}) permutation = {order}"
            )
        elif kind == 1 and len(shape) > 1:
            start = int(rng.integers(len(shape) - 1))
            end = int(rng.integers(start + 2, len(shape) + 1))
            groups = [[n] for n in range(start)] + [list(range(start, end))]
            groups += [[n] for n in range(end, len(shape))]
            shape[start:end] = [math.prod(shape[start:end])]
            lines.append(
                f"{name} = tensor.collapse_shape {at} {groups} : "
                f"{before} into {_type(shape)}"
            )
        elif kind == 2 and len(shape) < 7:
            place = int(rng.integers(len(shape)))
            size = shape[place]
            left = int(rng.choice([n for n in range(1, size + 1) if size % n == 0]))
            groups = [[n + (n > place)] for n in range(len(shape))]
            groups[place] = [place, place + 1]
            shape[place : place + 1] = [left, size // left]
            lines.append(
                f"{name} = tensor.expand_shape {at} {groups} output_shape {shape} : "
                f"{before} into {_type(shape)}"
            )
        else:
            starts = [int(rng.integers(size)) for size in shape]
            shape = [
                int(rng.integers(1, size - start + 1))
                for size, start in zip(shape, starts, strict=True)
            ]
            lines.append(
                f"{name} = tensor.extract_slice {at}{starts} {shape} "
                f"{[1] * len(shape)} : {before} to {_type(shape)}"
            )
    body = "\n  ".join(lines)
    return (
        f"func.func @f(%v: {first}) -> {_type(shape)} {{\n  {body}\n"
        f"  return {name} : {_type(shape)}\n}}"
    )


def _run(module):
    """The function's result where its argument counts from 0, and its transposes."""
    (function,) = module.body.operations
    (block,) = function.regions[0].blocks
    argument = block.arguments[0]
    shape = argument.type.shape
    values = {argument: np.arange(math.prod(shape)).reshape(shape)}
    transposes = 0
    for op in (one.operation for one in block.operations):
        if op.name == "func.return":
            return values[op.operands[0]], transposes
        if op.name == "tensor.empty":
            continue
        array, shape = values[op.operands[0]], op.results[0].type.shape
        if op.name == TRANSPOSE:
            array = array.transpose(list(op.attributes["permutation"]))
            transposes += 1
        elif op.name == SLICE:
            starts, sizes = (
                op.attributes["static_offsets"],
                op.attributes["static_sizes"],
            )
            pairs = zip(starts, sizes, strict=True)
            array = array[tuple(slice(start, start + size) for start, size in pairs)]
        else:
            assert op.name in (EXPAND, COLLAPSE)
        values[op.results[0]] = array.reshape(shape)
    raise AssertionError("no return")


@pytest.mark.fast
def test_random_views_are_the_same_ones():
    rng = np.random.default_rng(0)
    fewer = 0
    with make_context():
        for _ in range(300):
            text = _drawn(rng)
            before, made = _run(ir.Module.parse(text))
            module = ir.Module.parse(text)
            run_pipeline(module, PIPELINE)
            after, left = _run(module)
            np.testing.assert_array_equal(after, before, err_msg=text)
            assert left <= made, text
            fewer += left < made
    assert fewer > 50
