"""How loops index the operands of linalg ops, as a `LinalgView` says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from alcop_mlir.analysis.linalg.view import (
    LinalgView,
    Window,
    contraction_dimensions,
    linalg_view,
    view_of,
)
from alcop_mlir.bindings import ir, make_context

Loops = list[tuple[int | None, ...]]
PARSED: list[ir.Module] = []  # the bindings do not keep the module of an op alive


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with make_context():
        yield
        PARSED.clear()


def ops(body: str, *kinds: str) -> list[ir.Operation]:
    """The ops of a function of arguments %0, %1, ... of these types."""
    arguments = ", ".join(f"%{number}: {kind}" for number, kind in enumerate(kinds))
    module = ir.Module.parse(f"func.func @f({arguments}) {{ {body} return }}")
    PARSED.append(module)
    return [op.operation for op in module.body.operations[0].regions[0].blocks[0]]


def named(name: str, attributes: str, inputs: list[str], out: str) -> LinalgView:
    """A named op on arguments of these types."""
    numbers = ", ".join(f"%{number}" for number in range(len(inputs)))
    result = f"-> {out}" if out.startswith("tensor") and name != "linalg.fill" else ""
    text = (
        f"{name} {attributes} ins({numbers} : {', '.join(inputs)}) "
        f"outs(%{len(inputs)} : {out}) {result}"
    )
    text = f"%r = {text}" if result else text
    return view_of(ops(text, *inputs, out)[0])


def generic(
    loops: str, maps: list[str], inputs: list[str], out: str, body: str = ""
) -> LinalgView:
    """A linalg.generic that yields its last argument, with reductions unmarked."""
    every = [*inputs, out]
    elements = [kind.split("x")[-1].rstrip(">") for kind in every]
    elements = [one.removeprefix("memref<") for one in elements]
    block = ", ".join(f"%e{number}: {one}" for number, one in enumerate(elements))
    kinds = ", ".join(['"parallel"'] * len(loops.split(",")))
    affine = ", ".join(f"affine_map<({loops}) -> ({one})>" for one in maps)
    numbers = ", ".join(f"%{number}" for number in range(len(inputs)))
    text = f"""linalg.generic {{indexing_maps = [{affine}], iterator_types = [{kinds}]}}
        ins({numbers} : {", ".join(inputs)}) outs(%{len(inputs)} : {out}) {{
      ^bb0({block}):
        {body}
        linalg.yield %e{len(inputs)} : {elements[-1]} }}"""
    return view_of(ops(text, *every)[0])


def loops_of(view: LinalgView) -> Loops:
    return [operand.loops for operand in view.operands]


def groups(found: Any) -> tuple[tuple[int, ...], ...] | None:
    """The loops called batch, m, n and k."""
    if found is None:
        return None
    return tuple(found.batch), tuple(found.m), tuple(found.n), tuple(found.k)


def matrix(*shape: int | str, kind: str = "memref") -> str:
    return f"{kind}<{'x'.join(map(str, [*shape, 'f32']))}>"


TRANSPOSED_B = """indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
    affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]"""
TRANSPOSED_A = """indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
    affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]"""


@pytest.mark.parametrize("kind", ["memref", "tensor"])
@pytest.mark.parametrize(
    ("name", "attributes", "shapes", "loops", "dimensions"),
    [
        (
            *("linalg.matmul", "", [(4, 8), (8, 16), (4, 16)]),
            [(0, 2), (2, 1), (0, 1)],
            ((), (0,), (1,), (2,)),
        ),
        (
            *("linalg.matmul", TRANSPOSED_B, [(4, 8), (16, 8), (4, 16)]),
            [(0, 2), (1, 2), (0, 1)],
            ((), (0,), (1,), (2,)),
        ),
        (
            *("linalg.matmul", TRANSPOSED_A, [(8, 4), (8, 16), (4, 16)]),
            [(2, 0), (2, 1), (0, 1)],
            ((), (0,), (1,), (2,)),
        ),
        (
            *("linalg.batch_matmul", "", [(2, 4, 8), (2, 8, 16), (2, 4, 16)]),
            [(0, 1, 3), (0, 3, 2), (0, 1, 2)],
            ((0,), (1,), (2,), (3,)),
        ),
        (
            *("linalg.batch_reduce_matmul", "", [(2, 4, 8), (2, 8, 16), (4, 16)]),
            [(0, 1, 3), (0, 3, 2), (1, 2)],
            ((), (1,), (2,), (0, 3)),
        ),
        (
            *("linalg.matvec", "", [(4, 8), (8,), (4,)]),
            [(0, 1), (1,), (0,)],
            ((), (0,), (), (1,)),
        ),
        (
            *("linalg.vecmat", "", [(8,), (8, 16), (16,)]),
            [(1,), (1, 0), (0,)],
            ((), (), (0,), (1,)),
        ),
        (
            *("linalg.add", "", [(4, 8), (4, 8), (4, 8)]),
            [(0, 1), (0, 1), (0, 1)],
            ((0, 1), (), (), ()),
        ),
        (
            *("linalg.exp", "", [(4, 8), (4, 8)]),
            [(0, 1), (0, 1)],
            None,
        ),
        (
            *("linalg.copy", "", [(4, 8), (4, 8)]),
            [(0, 1), (0, 1)],
            None,
        ),
    ],
)
def test_named_ops(kind, name, attributes, shapes, loops, dimensions) -> None:
    *inputs, out = (matrix(*shape, kind=kind) for shape in shapes)
    view = named(name, attributes, inputs, out)
    assert loops_of(view) == loops
    assert len(view.inputs) == len(inputs)
    assert not view.is_generic
    reduced = set(range(view.rank)) - set(loops[-1])
    assert view.reductions == tuple(sorted(reduced))
    assert [view.static_size(n) for n in range(view.rank)] == [
        next(
            shape[own.index(n)]
            for shape, own in zip(shapes, loops, strict=True)
            if n in own
        )
        for n in range(view.rank)
    ]
    assert groups(contraction_dimensions(view.maps)) == dimensions
    assert [one.is_memref for one in view.operands] == [kind == "memref"] * len(shapes)
    assert [one.is_tensor for one in view.operands] == [kind == "tensor"] * len(shapes)


@pytest.mark.parametrize("kind", ["memref", "tensor"])
def test_convolutions(kind: str) -> None:
    view = named(
        "linalg.conv_2d_nhwc_hwcf",
        "{strides = dense<[2, 1]> : vector<2xi64>, "
        "dilations = dense<[1, 3]> : vector<2xi64>}",
        [matrix(1, 17, 18, 4, kind=kind), matrix(3, 4, 4, 8, kind=kind)],
        matrix(1, 8, 9, 8, kind=kind),
    )
    assert loops_of(view) == [(0, None, None, 6), (4, 5, 6, 3), (0, 1, 2, 3)]
    assert [one.window for one in view.inputs[0].indices[1:3]] == [
        Window(1, 2, 4, 1),
        Window(2, 1, 5, 3),
    ]
    found = view.convolution_dimensions
    assert found is not None
    image, channels = (found.output_image, found.filter_loop), found.output_channel
    assert [list(one) for one in image] == [[1, 2], [4, 5]]
    assert [*found.batch, *channels, *found.input_channel] == [0, 3, 6]
    assert [list(found.strides), list(found.dilations)] == [[2, 1], [1, 3]]
    assert contraction_dimensions(view.maps) is None  # upstream finds 0, 3 and 6
    assert view.reductions == (4, 5, 6)
    assert view.sizes[4] == (view.inputs[1].value, 0)


def test_pooling() -> None:
    view = named(
        "linalg.pooling_nhwc_max",
        "{strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}",
        [matrix(1, 16, 16, 4), matrix(3, 3)],
        matrix(1, 7, 7, 4),
    )
    assert not view.inputs[1].is_read  # only its shape is used


def test_ops_without_operand_segments() -> None:
    """The numbers of inputs and outputs are those of the body."""
    matrix_and_vectors = (matrix(4, 8), matrix(8, 4), matrix(4), matrix(4, 8))
    transpose, broadcast, reduce, mapped, copied, returned = ops(
        """
        linalg.transpose ins(%0 : memref<4x8xf32>) outs(%1 : memref<8x4xf32>)
            permutation = [1, 0]
        linalg.broadcast ins(%2 : memref<4xf32>) outs(%0 : memref<4x8xf32>)
            dimensions = [1]
        linalg.reduce {arith.addf} ins(%0 : memref<4x8xf32>) outs(%2 : memref<4xf32>)
            dimensions = [1]
        linalg.map {arith.addf}
            ins(%0, %0 : memref<4x8xf32>, memref<4x8xf32>) outs(%3 : memref<4x8xf32>)
        memref.copy %0, %3 : memref<4x8xf32> to memref<4x8xf32>
        """,
        *matrix_and_vectors,
    )
    assert loops_of(view_of(transpose)) == [(1, 0), (0, 1)]
    assert loops_of(view_of(broadcast)) == [(0,), (0, 1)]
    assert loops_of(view_of(reduce)) == [(0, 1), (0,)]
    assert view_of(reduce).reductions == (1,)
    assert [len(view_of(op).inputs) for op in (transpose, reduce, mapped)] == [1, 1, 2]
    assert [one.is_permutation for one in view_of(transpose).operands] == [True, True]
    assert [one.is_permutation for one in view_of(broadcast).operands] == [False, True]
    copy = view_of(copied)
    assert loops_of(copy) == [(0, 1), (0, 1)]
    assert copy.block is None
    assert copy.inputs[0].is_read
    assert linalg_view(returned) is None


def test_ops_without_maps() -> None:
    (softmax, _) = ops(
        "linalg.softmax dimension(1) ins(%0 : memref<4x8xf32>) "
        "outs(%1 : memref<4x8xf32>)",
        *[matrix(4, 8)] * 2,
    )
    assert linalg_view(softmax) is None
    (matmul, _) = ops(
        "linalg.matmul ins(%0, %1 : memref<4x4xf32>, memref<4x4xf32>) "
        "outs(%2 : memref<4x4xf32>)",
        *[matrix(4, 4)] * 3,
    )
    body = [op.operation for op in matmul.regions[0].blocks[0].operations]
    assert [linalg_view(op) for op in body] == [None] * len(body)


def test_scalars() -> None:
    fill = named("linalg.fill", "", ["f32"], matrix(4, 8))
    assert loops_of(fill) == [(), (0, 1)]
    (value,) = fill.inputs
    assert (value.is_memref, value.is_tensor, value.indices) == (False, False, ())
    in_memory = generic("i", ["", "i"], ["memref<f32>"], matrix(4))
    (value,) = in_memory.inputs
    assert (value.is_memref, value.loops) == (True, ())


def test_elements_of_the_body() -> None:
    view = generic(
        "i, j",
        ["i, j", "j, i", "i, j"],
        [matrix(4, 8), matrix(8, 4)],
        matrix(4, 8),
        "%x = arith.negf %e1 : f32",
    )
    assert [one.argument for one in view.operands] == list(view.block.arguments)
    assert [one.is_read for one in view.operands] == [False, True, True]
    assert [one.is_permutation for one in view.operands] == [True] * 3
    assert view.is_generic
    assert view.maps == [one.map for one in view.operands]


def test_indices() -> None:
    """Constants, scaled loops, windows, offsets, and what is not linear."""
    view = generic(
        "i, j, k",
        [
            "i * 2 + j * 3, 0, 5, i + 1, i * 2",
            "(i + j) mod 4, i - j, i + j + i, i + j + 1",
            "i, j",
            "k",
        ],
        [matrix("?", 1, 8, "?", "?"), matrix(4, *["?"] * 3), matrix(3, "?")],
        matrix(16),
    )
    first, second, _ = (operand.indices for operand in view.inputs)
    assert [index.window for index in first] == [
        Window(0, 2, 1, 3),
        None,
        None,
        Window(0, 1, offset=1),
        Window(0, 2),
    ]
    assert [index.constant for index in first] == [None, 0, 5, None, None]
    assert [index.offset for index in first] == [0, 0, 5, 1, 0]
    assert [index.coefficients for index in first] == [(2, 3), (), (), (1,), (2,)]
    assert [index.loop for index in (*first, *second)] == [None] * 9
    assert [index.coefficients for index in second] == [
        None,
        (1, -1),
        (2, 1),
        (1, 1),
    ]
    assert [index.loops for index in second] == [(0, 1)] * 4
    assert [index.window for index in second[1:]] == [
        Window(0, 1, 1, -1),
        Window(0, 2, 1, 1),
        Window(0, 1, 1, 1, offset=1),
    ]
    assert not view.inputs[0].is_permutation
    assert view.reductions == (0, 1)
    i_and_j, out = (operand.value for operand in view.operands[2:])
    assert view.sizes == {0: (i_and_j, 0), 1: (i_and_j, 1), 2: (out, 0)}


def test_what_indexes_each_element_once() -> None:
    view = generic("i", ["0, i", "i, i", "i"], [matrix(1, 4), matrix(4, 4)], matrix(4))
    assert [one.is_permutation for one in view.operands] == [False, False, True]


def test_outputs_without_reductions() -> None:
    """A loop of an output is none of a reduction, also if it shares a dimension."""
    view = generic("i, j", ["i, j", "i + j"], [matrix(4, 4)], matrix(7))
    assert view.reductions == ()


def test_several_outputs() -> None:
    (op, _) = ops(
        """
        linalg.reduce ins(%0, %0 : memref<4x8xf32>, memref<4x8xf32>)
            outs(%1, %2 : memref<4xf32>, memref<4xf32>) dimensions = [1]
            (%a: f32, %b: f32, %x: f32, %y: f32) { linalg.yield %x, %y : f32, f32 }
        """,
        *(matrix(4, 8), matrix(4), matrix(4)),
    )
    view = view_of(op)
    assert [one.value for one in view.inputs] == [op.operands[0]] * 2
    assert [one.value for one in view.outputs] == list(op.operands)[2:]
    assert contraction_dimensions(view.maps) is None


def test_sizes_prefer_static_dimensions() -> None:
    view = generic(
        "i, j",
        ["i, j", "j", "i, j"],
        [matrix("?", "?"), matrix(8)],
        matrix("?", "?"),
    )
    assert view.sizes == {0: (view.inputs[0].value, 0), 1: (view.inputs[1].value, 0)}
    assert [view.static_size(loop) for loop in range(2)] == [None, 8]
    assert view.inputs[0].static_size(1) is None


def test_an_empty_dimension_has_a_size() -> None:
    view = generic("i", ["i", "i"], [matrix("?")], matrix(0))
    assert view.static_size(0) == 0


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        # In the order B, A.
        (["k, n", "m, k", "m, n"], ((), (1,), (0,), (2,))),
        # A loop of one operand alone is in no group.
        (["m, k", "n, n", "m, n"], ((), (0,), (), ())),
        (["m, 0", "k, n", "m, n"], None),
        (["m + k, k", "k, n", "m, n"], None),
        (["m, k", "m, n"], None),
    ],
)
def test_contraction_dimensions(maps, expected) -> None:
    inputs = [matrix(*["?"] * (one.count(",") + 1)) for one in maps[:-1]]
    view = generic("m, n, k", maps, inputs, matrix("?", "?"))
    assert groups(contraction_dimensions(view.maps)) == expected


@pytest.mark.parametrize(
    ("maps", "holds"),
    [
        (["p * 2 + t, c", "t, c", "p, c"], True),
        (["p * 2 + t, c", "t, c", "c", "p, c"], True),
        (["t, c", "p * 2 + t, c", "p, c"], False),  # the filter first
        (["p * 2 + t + 1, c", "t, c", "p, c"], False),
        (["(p + t) floordiv 2, c", "t, c", "p, c"], False),
    ],
)
def test_convolution_dimensions(maps, holds) -> None:
    inputs = [matrix(*["?"] * (one.count(",") + 1)) for one in maps[:-1]]
    view = generic("p, t, c", maps, inputs, matrix("?", "?"))
    found = view.convolution_dimensions
    assert (found is not None) == holds
    if found is not None:
        assert (list(found.output_image), list(found.filter_loop)) == ([0], [1])
        assert (list(found.strides), list(found.depth)) == ([2], [2])
