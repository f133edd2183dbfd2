"""Programs that rotate columns of a matmul, as rotary embeddings do, and their values.

    y = x W' + bias, in heads of `parts` parts of `length` columns
    z[row, head, 0] = y[0] * cos[position] - y[1] * sin[position]
    z[row, head, 1] = y[1] * cos[position] + y[0] * sin[position]

The position of a row is its number in a sequence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

_HALVES = """\
    %wl = arith.extf %a : f16 to f32
    %wr = arith.extf %b : f16 to f32
    %lc = arith.mulf %wl, %c : f32
    %rs = arith.mulf %wr, %s : f32
    %first = arith.subf %lc, %rs : f32
    %rc = arith.mulf %wr, %c : f32
    %ls = arith.mulf %wl, %s : f32
    %second = arith.addf %rc, %ls : f32
    %part = linalg.index PART : index
    %is = arith.cmpi eq, %part, %zeroth : index
    %z = arith.select %is, %first, %second : f32
"""
# As transformers' rotate_half: with tables of both parts.
_TURNED_HALVES = """\
    %part = linalg.index PART : index
    %is = arith.cmpi eq, %part, %zeroth : index
    %negative = arith.negf %b : f16
    %turned = arith.select %is, %negative, %a : f16
    %wl = arith.extf %own : f16 to f32
    %wr = arith.extf %turned : f16 to f32
    %lc = arith.mulf %wl, %c : f32
    %rs = arith.mulf %wr, %s : f32
    %z = arith.addf %lc, %rs : f32
"""

_TEXT = """\
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
#read = affine_map<(LOOPS) -> (b, t, h, c)>
#own = affine_map<(LOOPS) -> (b, t, h, p, c)>
#table = affine_map<(LOOPS) -> AT>
#made = affine_map<(LOOPS) -> (LOOPS)>
#heads = affine_map<(b, t, h, c) -> (b, t, h, c)>
#places = affine_map<(b, t, h, c) -> (t, c)>
func.func @f(%x: tensor<MxKxf16>, %w: tensor<NxKxf16> MARK, %bias: tensor<Nxf16> MARK,
    %cos: tensor<TABLExf32>, %sin: tensor<TABLExf32>) -> (tensor<KINDS>) {
  %zero = arith.constant 0.0 : f32
  %zeroth = arith.constant 0 : index
  %ec = tensor.empty() : tensor<MxNxf32>
  %i = linalg.fill ins(%zero : f32) outs(%ec : tensor<MxNxf32>) -> tensor<MxNxf32>
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn]
    ins(%x, %w : tensor<MxKxf16>, tensor<NxKxf16>)
    outs(%i : tensor<MxNxf32>) -> tensor<MxNxf32>
  %ey = tensor.empty() : tensor<MxNxf16>
  %y = linalg.generic {indexing_maps = [#all, #n, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%d, %bias : tensor<MxNxf32>, tensor<Nxf16>) outs(%ey : tensor<MxNxf16>) {
  ^bb0(%a: f32, %b: f16, %o: f16):
    %w0 = arith.extf %b : f16 to f32
    %t0 = arith.addf %a, %w0 : f32
    %u0 = arith.truncf %t0 : f32 to f16
    linalg.yield %u0 : f16
  } -> tensor<MxNxf16>
  %h = tensor.extract_slice %y[0, START] [M, CUT] [1, 1]
         : tensor<MxNxf16> to tensor<MxCUTxf16>
  %w2 = tensor.expand_shape %h [[0, 1], [2, 3]] output_shape [S, T, HEADS, PITCH]
         : tensor<MxCUTxf16> into tensor<SxTxHEADSxPITCHxf16>
  %e = tensor.extract_slice %w2[0, 0, 0, 0] [S, T, HEADS, HALF] [1, 1, 1, 1]
         : tensor<SxTxHEADSxPITCHxf16> to tensor<SxTxHEADSxHALFxf16>
  %l = tensor.extract_slice %e[0, 0, 0, 0] [S, T, HEADS, LENGTH] [1, 1, 1, 1]
         : tensor<SxTxHEADSxHALFxf16> to tensor<HALVESxf16>
  %r = tensor.extract_slice %e[0, 0, 0, LENGTH] [S, T, HEADS, LENGTH] [1, 1, 1, 1]
         : tensor<SxTxHEADSxHALFxf16> to tensor<HALVESxf16>
  %g = tensor.expand_shape %e [[0], [1], [2], [3, 4]]
         output_shape [S, T, HEADS, 2, LENGTH]
         : tensor<SxTxHEADSxHALFxf16> into tensor<PARTEDxf16>
  %rest = tensor.extract_slice %y[0, BEHIND] [M, REST] [1, 1]
            : tensor<MxNxf16> to tensor<MxRESTxf16>
  %ez = tensor.empty() : tensor<MADExf16>
  %q = linalg.generic {indexing_maps = [#read, #read, #own, #table, #table, #made],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
    ins(%l, %r, %g, %cos, %sin : tensor<HALVESxf16>, tensor<HALVESxf16>,
        tensor<PARTEDxf16>, tensor<TABLExf32>, tensor<TABLExf32>)
    outs(%ez : tensor<MADExf16>) {
  ^bb0(%a: f16, %b: f16, %own: f16, %c: f32, %s: f32, %o: f16):
BODY    %u = arith.truncf %z : f32 to f16
    linalg.yield %u : f16
  } -> tensor<MADExf16>
  return RETURNED : tensor<KINDS>
}
"""


def _scaled(result: str, heads: str, table: str) -> str:
    """Whole heads times a table."""
    return f"""\
  {result} = linalg.generic {{indexing_maps = [#heads, #places, #heads],
      iterator_types = [FOUR]}}
    ins({heads}, {table} : tensor<WHOLExf16>, tensor<TABLExf32>)
    outs(%ef : tensor<WHOLExf32>) {{
  ^bb0(%a: f16, %b: f32, %o: f32):
    %wa = arith.extf %a : f16 to f32
    %z = arith.mulf %wa, %b : f32
    linalg.yield %z : f32
  }} -> tensor<WHOLExf32>
"""


# As transformers writes it: x * cos + cat(-right, left) * sin, in ops of their own.
_PUT_TOGETHER = f"""\
  %en = tensor.empty() : tensor<HALVESxf16>
  %n = linalg.generic {{indexing_maps = [#heads, #heads], iterator_types = [FOUR]}}
    ins(%r : tensor<HALVESxf16>) outs(%en : tensor<HALVESxf16>) {{
  ^bb0(%a: f16, %o: f16):
    %t = arith.negf %a : f16
    linalg.yield %t : f16
  }} -> tensor<HALVESxf16>
  %t = tensor.concat dim(3) %n, %l : (tensor<HALVESxf16>, tensor<HALVESxf16>)
         -> tensor<WHOLExf16>
  %ef = tensor.empty() : tensor<WHOLExf32>
{_scaled("%m0", "%e", "%cos")}\
{_scaled("%m1", "%t", "%sin")}\
  %ez = tensor.empty() : tensor<WHOLExf16>
  %q = linalg.generic {{indexing_maps = [#heads, #heads, #heads],
      iterator_types = [FOUR]}}
    ins(%m0, %m1 : tensor<WHOLExf32>, tensor<WHOLExf32>)
    outs(%ez : tensor<WHOLExf16>) {{
  ^bb0(%a: f32, %b: f32, %o: f16):
    %z = arith.addf %a, %b : f32
    %u = arith.truncf %z : f32 to f16
    linalg.yield %u : f16
  }} -> tensor<WHOLExf16>
"""


@dataclass(frozen=True)
class Rotated:
    """A program: sequences of rows, times a weight with heads, of which some rotate.

    order: of the result's dimensions: b sequences, t rows, h heads, p parts, c columns
    first, more: heads before and behind those that rotate
    between: columns of each of these heads behind those that rotate
    mark:  of the weight and the bias
    reads_own: whether it reads the part of its own iteration, and tables for both
    concat: whether it is several ops, with a tensor.concat of the halves; then the
            result has a dimension for both, and tables have
    """

    sequences: int = 1
    rows: int = 48
    heads: int = 2
    length: int = 16
    order: str = "bthpc"
    first: int = 0
    more: int = 0
    between: int = 0
    mark: str = "{alcop.weight}"
    reads_own: bool = False
    concat: bool = False

    K = 32

    @property
    def columns(self) -> int:
        """Of the matmul."""
        return (self.first + self.more) * 2 * self.length + self.heads * self.pitch

    @property
    def rest(self) -> range:
        """Columns that are returned as they are: between heads, else behind them."""
        half = 2 * self.length
        if self.between:
            return range(
                (self.first + 1) * half, (self.first + 1) * half + self.between
            )
        return range(self.columns - self.more * half, self.columns)

    @property
    def pitch(self) -> int:
        """Columns from one head that rotates to the next one."""
        return 2 * self.length + self.between

    def text(self) -> str:
        """The function: the rotated heads, and columns that are not rotated."""
        m, half = self.sequences * self.rows, 2 * self.length
        sizes = {"b": self.sequences, "t": self.rows, "h": self.heads, "p": 2}
        sizes["c"] = self.length
        start = self.first * half
        rows, table = f"{self.sequences}x{self.rows}", (self.rows, self.length)
        words = {
            "M": m, "K": self.K, "N": self.columns, "HALF": half,
            "PITCH": self.pitch, "LENGTH": self.length,
            "HEADS": self.heads, "S": self.sequences, "T": self.rows, "START": start,
            "CUT": self.heads * self.pitch, "BEHIND": self.rest.start,
            "REST": len(self.rest),
            "LOOPS": ", ".join(self.order), "MARK": self.mark,
            "MADE": "x".join(str(sizes[one]) for one in self.order),
            "PARTED": f"{rows}x{self.heads}x2x{self.length}",
            "HALVES": f"{rows}x{self.heads}x{self.length}",
            "TABLE": "x".join(map(str, self._table(np.zeros(table)).shape)),
            "WHOLE": f"{rows}x{self.heads}x{half}",
            "FOUR": ", ".join(['"parallel"'] * 4),
            "AT": "(t, p, c)" if self.reads_own else "(t, c)",
            "PART": self.order.index("p"),
        }  # fmt: skip
        made = _TEXT
        if self.concat:
            begin, end = made.index("  %ez ="), made.index("  return ")
            made = made[:begin] + _PUT_TOGETHER + made[end:]
            made = re.sub(r"  %g = .*\n.*\n.*\n", "", made).replace("MADE", "WHOLE")
        if not self.rest:
            made = re.sub(r"  %rest = .*\n.*\n", "", made)
        rest = ("%q, %rest", "MADExf16>, tensor<MxRESTxf16")
        returned, kinds = rest if self.rest else ("%q", "MADExf16")
        kinds = kinds.replace("MADE", "WHOLE") if self.concat else kinds
        made = made.replace("RETURNED", returned).replace("KINDS", kinds)
        made = made.replace("BODY", _TURNED_HALVES if self.reads_own else _HALVES)
        return re.sub("[A-Z]+", lambda found: str(words[found.group()]), made)

    def drawn(self, seed: int = 1) -> list[np.ndarray]:
        """Arguments."""
        draw = np.random.default_rng(seed)
        m, shape = self.sequences * self.rows, (self.rows, self.length)
        angles = draw.uniform(0, 6, shape)
        return [
            _half(draw, m, self.K),
            _half(draw, self.columns, self.K),
            _half(draw, self.columns),
            *(self._table(one(angles)) for one in (np.cos, np.sin)),
        ]

    def _table(self, made: np.ndarray) -> np.ndarray:
        if self.reads_own:
            made = np.stack((made, made), axis=1)
        if self.concat:
            made = np.concatenate((made, made), axis=1)
        return made.astype(np.float32)

    def expected(self, arguments: list[np.ndarray]) -> list[np.ndarray]:
        """The results, in f64 but for the rounding of y."""
        x, w, bias, cos, sin = (one.astype(np.float64) for one in arguments)
        cos, sin = (one.reshape(self.rows, -1)[:, : self.length] for one in (cos, sin))
        y = (x @ w.T + bias).astype(np.float16).astype(np.float64)
        step = 2 * self.length
        begin, shape = self.first * step, (self.sequences, self.rows, self.heads)
        end = begin + self.heads * self.pitch
        heads = y[:, begin:end].reshape(*shape, self.pitch)
        halves = heads[..., :step].reshape(*shape, 2, self.length)
        left, right = halves[..., 0, :], halves[..., 1, :]
        c, s = cos[None, :, None], sin[None, :, None]
        made = np.stack((left * c - right * s, right * c + left * s), axis=3)
        turned = made.transpose(["bthpc".index(one) for one in self.order])
        if self.concat:
            turned = made.reshape(*made.shape[:3], -1)
        return [turned, y[:, self.rest]] if self.rest else [turned]


def _half(draw: np.random.Generator, *shape: int) -> np.ndarray:
    return draw.uniform(-1, 1, shape).astype(np.float16)
