"""How many threads have a row, and how many rows a block."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alcop_mlir.analysis.ir.walk import host_blocks, walk
from alcop_mlir.analysis.rows.row_groups import RowGroup, row_groups
from alcop_mlir.analysis.rows.row_threads import row_work, spread
from alcop_mlir.bindings import ir
from alcop_mlir.target import find_target

A100 = find_target("sm_80")
NORM = """
#full = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @f(%x: memref<{rows}x{columns}xf32>, %y: memref<{rows}x{columns}xf32>) {{
  %zero = arith.constant 0.0 : f32
  %total = memref.alloc() : memref<{rows}xf32>
  linalg.fill ins(%zero : f32) outs(%total : memref<{rows}xf32>)
  linalg.generic {{indexing_maps = [#full, #row],
                  iterator_types = ["parallel", "reduction"]}}
      ins(%x : memref<{rows}x{columns}xf32>) outs(%total : memref<{rows}xf32>) {{
  ^bb0(%a: f32, %t: f32):
    %s = arith.addf %t, %a : f32
    linalg.yield %s : f32
  }}
  linalg.generic {{indexing_maps = [#full, #row, #full],
                  iterator_types = ["parallel", "parallel"]}}
      ins(%x, %total : memref<{rows}x{columns}xf32>, memref<{rows}xf32>)
      outs(%y : memref<{rows}x{columns}xf32>) {{
  ^bb0(%a: f32, %t: f32, %o: f32):
    %d = arith.divf %a, %t : f32
    linalg.yield %d : f32
  }}
  return
}}
"""


@pytest.fixture
def group(request: pytest.FixtureRequest, context: ir.Context) -> Iterator[RowGroup]:
    """Of a norm with these rows and columns, "?" for columns at run time."""
    rows, columns = request.param
    module = ir.Module.parse(NORM.format(rows=rows, columns=columns), context)
    (func,) = walk(module.operation, "func.func")
    (block,) = host_blocks(func)
    (found,) = row_groups(block)
    assert isinstance(found, RowGroup)
    yield found
    assert module.operation.verify()  # it has lived on meanwhile


@pytest.mark.parametrize("group", [(65536, 1024), (65536, 4096)], indirect=True)
def test_many_rows_have_as_few_threads_as_hold_one(group: RowGroup) -> None:
    how = spread(group, A100)
    assert how.threads == group.layout.threads
    assert how.in_block >= 128


@pytest.mark.parametrize("group", [(1, 4096), (8, 4096)], indirect=True)
def test_few_rows_have_more_threads(group: RowGroup) -> None:
    how = spread(group, A100)
    assert how.threads > group.layout.threads
    assert how.is_held
    assert how.threads * how.width * how.vectors >= 4096


@pytest.mark.parametrize("group", [(128, 768), (64, 256), (8, 768)], indirect=True)
def test_few_rows_are_in_more_blocks(group: RowGroup) -> None:
    how = spread(group, A100)
    assert how.threads == 32
    assert how.in_block < group.layout.in_block


@pytest.mark.parametrize("group", [(64, "?"), (64, 20000)], indirect=True)
def test_rows_that_are_not_held_stay_as_they_are(group: RowGroup) -> None:
    assert spread(group, A100) == group.layout


@pytest.mark.parametrize("group", [(64, 256)], indirect=True)
def test_work_counts_each_array_once(group: RowGroup) -> None:
    work = row_work(group)
    assert work is not None
    assert (work.rows, work.columns, work.reductions) == (64, 256, 1)
    assert work.moved_bytes == 2 * 64 * 256 * 4
