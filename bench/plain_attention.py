"""Attention as a plain program on tensors: contractions, a scale, a softmax of rows.

A causal mask is computed from the numbers of row and column, as frontends write it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from attention_tiles import Attention

from alcop_mlir.compilation import compiler
from alcop_mlir.pipelines.named import AlcopCompile

_CAUSAL = """\
  %i = linalg.index 1 : index
  %j = linalg.index 2 : index
  %sees = arith.cmpi sle, %j, %i : index
  %y = arith.select %sees, %x, %low : f32
"""


@dataclass(frozen=True)
class Tiled(compiler.Options):
    """With given tiles of chains (rows of a warp, warps, columns), in one part.

    stages: shared and register stages, whether registers suffice or not; or chosen
    """

    tiles: tuple[int, int, int] = (16, 4, 64)
    stages: tuple[int, int] | None = None

    def pipeline(self) -> str:
        """As `alcop-compile`, with these."""
        tiles = ",".join(map(str, self.tiles))
        text = ",".join(AlcopCompile(target=self.target.name).steps())
        given = {"alcop-tile-chains{": f"tiles={tiles} parts=1 "}
        if self.stages is not None:
            stages = ",".join(map(str, self.stages))
            given["alcop-plan-pipelines{"] = f"stages={stages} "
        for old, option in given.items():
            assert text.count(old) == 1
            text = text.replace(old, old + option)
        return f"builtin.module({text})"


def plain_attention(case: Attention) -> str:
    """The function of q, k and v, heads x size x head, that `case` has in tiles."""
    batch = f"{case.heads}x{case.size}"
    array, kind = f"tensor<{batch}x{case.head}x{case.kind}>", case.kind
    scores = f"tensor<{batch}x{case.size}xf32>"
    made = f"tensor<{batch}x{case.head}xf32>"
    mask = _CAUSAL if case.causal else ""
    element = "%y" if case.causal else "%x"
    return f"""\
#mk = affine_map<(b, m, n, k) -> (b, m, k)>
#nk = affine_map<(b, m, n, k) -> (b, n, k)>
#kn = affine_map<(b, m, n, k) -> (b, k, n)>
#mn = affine_map<(b, m, n, k) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @attention(%q: {array}, %k: {array}, %v: {array}) -> {array} {{
%zero = arith.constant 0.0 : f32
%low = arith.constant 0xFF800000 : f32
%scale = arith.constant {1 / math.sqrt(case.head):.9e} : f32
%es = tensor.empty() : {scores}
%zs = linalg.fill ins(%zero : f32) outs(%es : {scores}) -> {scores}
%s = linalg.generic {{indexing_maps = [#mk, #nk, #mn], {_loops(3)}}}
    ins(%q, %k : {array}, {array}) outs(%zs : {scores}) {{
{_multiply_add(kind)}
}} -> {scores}
%x = linalg.generic {{indexing_maps = [#id, #id], {_loops(3, 0)}}}
    ins(%s : {scores}) outs(%es : {scores}) {{
^bb0(%a: f32, %c: f32):
  %x = arith.mulf %a, %scale : f32
{mask}  linalg.yield {element} : f32
}} -> {scores}
%w = linalg.softmax dimension(2) ins(%x : {scores}) outs(%es : {scores}) -> {scores}
%ep = tensor.empty() : tensor<{batch}x{case.size}x{kind}>
%p = linalg.generic {{indexing_maps = [#id, #id], {_loops(3, 0)}}}
    ins(%w : {scores}) outs(%ep : tensor<{batch}x{case.size}x{kind}>) {{
^bb0(%a: f32, %c: {kind}):
  %0 = arith.truncf %a : f32 to {kind}
  linalg.yield %0 : {kind}
}} -> tensor<{batch}x{case.size}x{kind}>
%eo = tensor.empty() : {made}
%zo = linalg.fill ins(%zero : f32) outs(%eo : {made}) -> {made}
%o = linalg.generic {{indexing_maps = [#mk, #kn, #mn], {_loops(3)}}}
    ins(%p, %v : tensor<{batch}x{case.size}x{kind}>, {array}) outs(%zo : {made}) {{
{_multiply_add(kind)}
}} -> {made}
%en = tensor.empty() : {array}
%r = linalg.generic {{indexing_maps = [#id, #id], {_loops(3, 0)}}}
    ins(%o : {made}) outs(%en : {array}) {{
^bb0(%a: f32, %c: {kind}):
  %0 = arith.truncf %a : f32 to {kind}
  linalg.yield %0 : {kind}
}} -> {array}
return %r : {array}
}}
"""


def _loops(parallel: int, reductions: int = 1) -> str:
    kinds = ['"parallel"'] * parallel + ['"reduction"'] * reductions
    return f"iterator_types = [{', '.join(kinds)}]"


def _multiply_add(kind: str) -> str:
    return f"""\
^bb0(%a: {kind}, %b: {kind}, %c: f32):
  %0 = arith.extf %a : {kind} to f32
  %1 = arith.extf %b : {kind} to f32
  %2 = arith.mulf %0, %1 : f32
  %3 = arith.addf %c, %2 : f32
  linalg.yield %3 : f32"""
