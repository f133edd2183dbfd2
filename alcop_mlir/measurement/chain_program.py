"""A chain as a program of its own, so that its tiles can be measured alone.

Before:  batch=2 m=64 n=64 k=32 d=32 first=none last=0, with a softmax
After:   func.func @operator(%q, %k, %v: tensor<2x64x32xf16>) -> tensor<2x64x32xf16> {
           %s = <sum over k of q[b, m, k] * k[b, n, k]>
           %x = <s * scale, -inf where n - m > last>
           %w = linalg.softmax dimension(2) ins(%x)
           <sum over n of w[b, m, n] * v[b, n, d]> }

Without a softmax, of which no bounds are known, weights are squares of scores. The
batch is one loop, and each matrix has keys and values of its own, whatever the program
has that the chain is from; its other element-wise ops are left out. These do not change
which tiles fit, and hardly which of them are fast.
"""

from __future__ import annotations

import math

from alcop_mlir.tuning.chain_schedule import sizes_of
from alcop_mlir.tuning.fused.chain_problem import ChainSizes
from alcop_mlir.tuning.problem import Problem

_MAPS = """\
#mk = affine_map<(b, m, n, k) -> (b, m, k)>
#nk = affine_map<(b, m, n, k) -> (b, n, k)>
#kn = affine_map<(b, m, n, k) -> (b, k, n)>
#mn = affine_map<(b, m, n, k) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
"""
_LOOPS = ", ".join(['"parallel"'] * 3)


def program(problem: Problem) -> str:
    """The text of a module with the chain alone."""
    sizes, kind = sizes_of(problem), problem.dtypes[0]
    out = problem.dtypes[3]
    q, k, v, o = (
        f"tensor<{sizes.batch}x{rows}x{columns}x{name}>"
        for rows, columns, name in (
            (sizes.m, sizes.k, kind),
            (sizes.n, sizes.k, kind),
            (sizes.n, sizes.d, kind),
            (sizes.m, sizes.d, out),
        )
    )
    scores = f"tensor<{sizes.batch}x{sizes.m}x{sizes.n}xf32>"
    narrow = scores.replace("f32", kind)
    weighted = f"tensor<{sizes.batch}x{sizes.m}x{sizes.d}xf32>"
    softmax = f"""\
%w = linalg.softmax dimension(2) ins(%x : {scores}) outs(%es : {scores}) -> {scores}
"""
    return f"""\
{_MAPS}func.func @operator(%q: {q}, %k: {k}, %v: {v}) -> {o} {{
%zero = arith.constant 0.0 : f32
%low = arith.constant 0xFF800000 : f32
%scale = arith.constant {1 / math.sqrt(sizes.k):.9e} : f32
%es = tensor.empty() : {scores}
%es_0 = linalg.fill ins(%zero : f32) outs(%es : {scores}) -> {scores}
%s = {_contraction("#mk, #nk", "%q, %k", (q, k), "%es", scores)}
%x = linalg.generic {{indexing_maps = [#id, #id], iterator_types = [{_LOOPS}]}}
    ins(%s : {scores}) outs(%es : {scores}) {{
^bb0(%a: f32, %c: f32):
{_element(sizes)}
}} -> {scores}
{softmax if sizes.of_rows else ""}%ep = tensor.empty() : {narrow}
%p = {_narrowed("%w" if sizes.of_rows else "%x", scores, "%ep", narrow, kind)}
%eo = tensor.empty() : {weighted}
%eo_0 = linalg.fill ins(%zero : f32) outs(%eo : {weighted}) -> {weighted}
%o = {_contraction("#mk, #kn", "%p, %v", (narrow, v), "%eo", weighted)}
%en = tensor.empty() : {o}
%r = {_narrowed("%o", weighted, "%en", o, out)}
return %r : {o}
}}
"""


def _contraction(
    maps: str, operands: str, types: tuple[str, str], empty: str, result: str
) -> str:
    kind = types[0].rpartition("x")[2].rstrip(">")
    return f"""linalg.generic {{indexing_maps = [{maps}, #mn],
    iterator_types = [{_LOOPS}, "reduction"]}}
    ins({operands} : {types[0]}, {types[1]}) outs({empty}_0 : {result}) {{
^bb0(%a: {kind}, %b: {kind}, %c: f32):
  %0 = arith.extf %a : {kind} to f32
  %1 = arith.extf %b : {kind} to f32
  %2 = arith.mulf %0, %1 : f32
  %3 = arith.addf %c, %2 : f32
  linalg.yield %3 : f32
}} -> {result}"""


def _narrowed(value: str, wide: str, empty: str, narrow: str, kind: str) -> str:
    if kind == "f32":
        return f"tensor.cast {value} : {wide} to {narrow}"
    return f"""linalg.generic {{indexing_maps = [#id, #id],
    iterator_types = [{_LOOPS}]}} ins({value} : {wide}) outs({empty} : {narrow}) {{
^bb0(%a: f32, %c: {kind}):
  %0 = arith.truncf %a : f32 to {kind}
  linalg.yield %0 : {kind}
}} -> {narrow}"""


def _element(sizes: ChainSizes) -> str:
    """What becomes of a score."""
    lines = ["%1 = arith.mulf %a, %scale : f32"]
    if not sizes.of_rows:
        lines = ["%0 = arith.mulf %a, %scale : f32", "%1 = arith.mulf %0, %0 : f32"]
    value = "%1"
    bounds = (("last", "sle", sizes.last), ("first", "sge", sizes.first))
    known = [(name, how, at) for name, how, at in bounds if at is not None]
    if known:
        lines += ["%m = linalg.index 1 : index", "%n = linalg.index 2 : index"]
    for name, how, at in known:
        lines += [
            f"%{name} = arith.constant {at} : index",
            f"%{name}_at = arith.addi %m, %{name} : index",
            f"%{name}_in = arith.cmpi {how}, %n, %{name}_at : index",
            f"%{name}_of = arith.select %{name}_in, {value}, %low : f32",
        ]
        value = f"%{name}_of"
    return "\n".join(f"  {line}" for line in [*lines, f"linalg.yield {value} : f32"])
