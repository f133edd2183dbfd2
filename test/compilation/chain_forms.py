"""Chains of two contractions with softmax, or maps, between them, on tensors."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

MASKS = (
    *("none", "causal", "window", "additive", "columns", "boolean", "capped"),
    *("slopes", "temperature", "lengths", "positions", "cached", "bytes"),
)
MAPS = ("sigmoid", "squared", "decay", "inverse")


@dataclass(frozen=True)
class Form:
    """A chain. Queries are B x H x M x K, keys B x G x N x K, values B x G x N x D.

    groups:     heads that share keys and values
    mask:       one of MASKS, or "segments", whose m is n
    tokens:     the tensors have heads inside of tokens, and so has the result
    keys_first: rows of keys are along N in memory
    maximum:    the op that combines elements of a row
    weights:    "softmax", or one of MAPS: no row is reduced
    open:       of the letters b, h, m, n: sizes that are known at run time only
    """

    batch: int = 1
    heads: int = 2
    groups: int = 1
    m: int = 64
    n: int = 64
    k: int = 32
    d: int = 32
    dtype: str = "f16"
    mask: str = "none"
    tokens: bool = False
    keys_first: bool = False
    maximum: str = "maximumf"
    weights: str = "softmax"
    scale: float = 0.25
    open: str = ""
    lines: list[str] = field(default_factory=list, compare=False)

    def text(self) -> str:
        """The function, whose result is of 16 bits."""
        self.lines.clear()
        b, h, m, n = self._sizes()
        g, k, d, t = self.heads // self.groups, self.k, self.d, self.dtype
        g = h if self.groups == 1 else g
        q, q_type = self._heads("q", h, m, k)
        keys, k_type = self._heads("k", g, n, k)
        v, v_type = self._heads("v", g, n, d)
        if self.groups > 1:
            keys, v = self._shared(keys, n, k), self._shared(v, n, d)
        scores = f"tensor<{b}x{h}x{m}x{n}xf32>"
        out = f"tensor<{b}x{h}x{m}x{d}xf32>"
        self._add(
            f"""
  %es = tensor.empty() : {scores}
  %zs = linalg.fill ins(%zero : f32) outs(%es : {scores}) -> {scores}
  %s = linalg.generic {{indexing_maps = [#mk, #nk, #mn], {_parallel(4, 1)}}}
      ins({q}, {keys} : tensor<{b}x{h}x{m}x{k}x{t}>, tensor<{b}x{h}x{n}x{k}x{t}>)
      outs(%zs : {scores}) {{
  ^bb0(%x: {t}, %y: {t}, %c: f32):
    %0 = arith.extf %x : {t} to f32
    %1 = arith.extf %y : {t} to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %c, %2 : f32
    linalg.yield %3 : f32
  }} -> {scores}"""
        )
        mask, mask_maps, code = self._mask()
        count = len(mask_maps)
        ins = ", ".join(["%s", *["%mask"] * count])
        maps = ", ".join(["#id", *mask_maps, "#id"])
        kinds = ", ".join([scores, *[f"tensor<{mask}>"] * count])
        argument = "".join(
            f"%b{number or ''}: {mask.split('x')[-1]}, " for number in range(count)
        )
        self._add(
            f"""
  %x = linalg.generic {{indexing_maps = [{maps}], {_parallel(4)}}}
      ins({ins} : {kinds}) outs(%es : {scores}) {{
  ^bb0(%a: f32, {argument}%c: f32):
    %0 = arith.mulf %a, %scale : f32
{code}
    linalg.yield %masked : f32
  }} -> {scores}"""
        )
        self._add(self._softmax() if self.weights == "softmax" else self._mapped())
        self._add(
            f"""
  %eo = tensor.empty() : {out}
  %zo = linalg.fill ins(%zero : f32) outs(%eo : {out}) -> {out}
  %o = linalg.generic {{indexing_maps = [#mk, #kn, #mn], {_parallel(4, 1)}}}
      ins(%p, {v} : tensor<{b}x{h}x{m}x{n}x{t}>, tensor<{b}x{h}x{n}x{d}x{t}>)
      outs(%zo : {out}) {{
  ^bb0(%a: {t}, %y: {t}, %c: f32):
    %0 = arith.extf %a : {t} to f32
    %1 = arith.extf %y : {t} to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %c, %2 : f32
    linalg.yield %3 : f32
  }} -> {out}
  %en = tensor.empty() : tensor<{b}x{h}x{m}x{d}x{t}>
  %narrow = linalg.generic {{indexing_maps = [#id, #id], {_parallel(4)}}}
      ins(%o : {out}) outs(%en : tensor<{b}x{h}x{m}x{d}x{t}>) {{
  ^bb0(%a: f32, %c: {t}):
    %0 = arith.truncf %a : f32 to {t}
    linalg.yield %0 : {t}
  }} -> tensor<{b}x{h}x{m}x{d}x{t}>"""
        )
        result, kind = "%narrow", f"tensor<{b}x{h}x{m}x{d}x{t}>"
        if self.tokens:
            kind = f"tensor<{b}x{m}x{h}x{d}x{t}>"
            self._add(
                f"""
  %et = tensor.empty() : {kind}
  %turned = linalg.transpose ins(%narrow : tensor<{b}x{h}x{m}x{d}x{t}>)
      outs(%et : {kind}) permutation = [0, 2, 1, 3]"""
            )
            result = "%turned"
        given = f"%q: {q_type}, %k: {k_type}, %v: {v_type}"
        given += f", %mask: tensor<{mask}>" if mask else ""
        places = {"B?": ("q", 0), "H?": ("q", 1), "M?": ("q", 2), "N?": ("k", 2)}
        if self.tokens:
            places |= {"H?": ("q", 2), "M?": ("q", 1), "N?": ("k", 1)}
        if self.keys_first:
            places["N?"] = ("k", 3)
        types = {"q": q_type, "k": k_type}
        sizes = "".join(
            f"\n  %c{name[0]} = arith.constant {at} : index\n  "
            f"%{name[0]} = tensor.dim %{of}, %c{name[0]} : {types[of]}"
            for name, (of, at) in places.items()
            if name[0].lower() in self.open
        )
        text = (
            _MAPS
            + f"func.func @chain({given}) -> {kind} {{{sizes}"
            + _CONSTANTS.replace("SCALE", repr(float(self.scale)))
            + "".join(self.lines)
            + f"\n  return {result} : {kind}\n}}\n"
        )
        text = re.sub(r"tensor\.empty\(\) : (tensor<[^>]*>)", _with_sizes, text)
        return re.sub(r"[BHMN]\?", "?", text)

    def _sizes(self) -> tuple[str, str, str, str]:
        """Of batch, heads, rows and columns; a letter and "?" for one that is open."""
        sizes = {"b": self.batch, "h": self.heads, "m": self.m, "n": self.n}
        b, h, m, n = (
            f"{one.upper()}?" if one in self.open else str(size)
            for one, size in sizes.items()
        )
        return b, h, m, n

    def _softmax(self) -> str:
        """The code that makes %p of %x, of rows."""
        (b, h, m, n), t = self._sizes(), self.dtype
        scores, rows = f"tensor<{b}x{h}x{m}x{n}xf32>", f"tensor<{b}x{h}x{m}xf32>"
        return f"""
  %er = tensor.empty() : {rows}
  %fl = linalg.fill ins(%low : f32) outs(%er : {rows}) -> {rows}
  %max = linalg.generic {{indexing_maps = [#id, #row], {_parallel(3, 1)}}}
      ins(%x : {scores}) outs(%fl : {rows}) {{
  ^bb0(%a: f32, %c: f32):
    %0 = arith.{self.maximum} %a, %c : f32
    linalg.yield %0 : f32
  }} -> {rows}
  %w = linalg.generic {{indexing_maps = [#id, #row, #id], {_parallel(4)}}}
      ins(%x, %max : {scores}, {rows}) outs(%es : {scores}) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  }} -> {scores}
  %fz = linalg.fill ins(%zero : f32) outs(%er : {rows}) -> {rows}
  %sum = linalg.generic {{indexing_maps = [#id, #row], {_parallel(3, 1)}}}
      ins(%w : {scores}) outs(%fz : {rows}) {{
  ^bb0(%a: f32, %c: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  }} -> {rows}
  %ep = tensor.empty() : tensor<{b}x{h}x{m}x{n}x{t}>
  %p = linalg.generic {{indexing_maps = [#id, #row, #id], {_parallel(4)}}}
      ins(%w, %sum : {scores}, {rows}) outs(%ep : tensor<{b}x{h}x{m}x{n}x{t}>) {{
  ^bb0(%a: f32, %b: f32, %c: {t}):
    %0 = arith.divf %a, %b : f32
    %1 = arith.truncf %0 : f32 to {t}
    linalg.yield %1 : {t}
  }} -> tensor<{b}x{h}x{m}x{n}x{t}>"""

    def _mapped(self) -> str:
        """The code that makes %p of %x, element by element."""
        (b, h, m, n), t = self._sizes(), self.dtype
        scores, weights = (f"tensor<{b}x{h}x{m}x{n}x{kind}>" for kind in ("f32", t))
        return f"""
  %ep = tensor.empty() : {weights}
  %p = linalg.generic {{indexing_maps = [#id, #id], {_parallel(4)}}}
      ins(%x : {scores}) outs(%ep : {weights}) {{
  ^bb0(%a: f32, %c: {t}):
{_MAPPED[self.weights]}
    %w = arith.truncf %weight : f32 to {t}
    linalg.yield %w : {t}
  }} -> {weights}"""

    def _add(self, text: str) -> None:
        self.lines.append(text)

    def _heads(
        self, name: str, heads: int | str, rows: str, size: int
    ) -> tuple[str, str]:
        """A tensor of heads of rows, and the type of the argument it is made of."""
        (b, *_), t = self._sizes(), self.dtype
        wanted = f"tensor<{b}x{heads}x{rows}x{size}x{t}>"
        if name == "k" and self.keys_first:
            kind, order = f"tensor<{b}x{heads}x{size}x{rows}x{t}>", [0, 1, 3, 2]
        elif self.tokens:
            kind, order = f"tensor<{b}x{rows}x{heads}x{size}x{t}>", [0, 2, 1, 3]
        else:
            return f"%{name}", wanted
        self._add(
            f"""
  %e{name} = tensor.empty() : {wanted}
  %t{name} = linalg.transpose ins(%{name} : {kind}) outs(%e{name} : {wanted})
      permutation = {order}"""
        )
        return f"%t{name}", kind

    def _shared(self, value: str, rows: str, columns: int) -> str:
        """Keys or values for all heads."""
        (b, *_), h, t, r = self._sizes(), self.heads, self.dtype, self.groups
        name = value.strip("%") + "_shared"
        split = f"tensor<{b}x{h // r}x{r}x{rows}x{columns}x{t}>"
        self._add(
            f"""
  %e{name} = tensor.empty() : {split}
  %b{name} = linalg.broadcast
      ins({value} : tensor<{b}x{h // r}x{rows}x{columns}x{t}>)
      outs(%e{name} : {split}) dimensions = [2]
  %{name} = tensor.collapse_shape %b{name} [[0], [1, 2], [3], [4]]
      : {split} into tensor<{b}x{h}x{rows}x{columns}x{t}>"""
        )
        return f"%{name}"

    def _mask(self) -> tuple[str, list[str], str]:
        """The mask's shape and type, maps of it, and the code that makes %masked."""
        shape, maps, code = _MASKS[self.mask]
        sizes = dict(zip("bhmn", self._sizes(), strict=True))
        shape = "x".join(str(sizes.get(one, one)) for one in shape.split())
        maps = [f"affine_map<(b, h, m, n) -> ({one})>" for one in maps]
        return shape, maps, code


def _with_sizes(match: re.Match[str]) -> str:
    """An empty tensor with values for sizes that its type leaves open."""
    sizes = ", ".join(f"%{one}" for one in re.findall(r"([BHMN])\?", match[1]))
    return f"tensor.empty({sizes}) : {match[1]}"


_MAPS = """\
#mk = affine_map<(b, h, m, n, k) -> (b, h, m, k)>
#nk = affine_map<(b, h, m, n, k) -> (b, h, n, k)>
#kn = affine_map<(b, h, m, n, k) -> (b, h, k, n)>
#mn = affine_map<(b, h, m, n, k) -> (b, h, m, n)>
#id = affine_map<(b, h, m, n) -> (b, h, m, n)>
#row = affine_map<(b, h, m, n) -> (b, h, m)>
"""
_CONSTANTS = """
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %scale = arith.constant SCALE : f32
  %cap = arith.constant 3.0 : f32
  %one = arith.constant 1.0 : f32
  %rate = arith.constant 0.0625 : f32
  %eight = arith.constant 20 : i64"""
_INDICES = """\
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %m = arith.index_cast %i : index to i64
    %n = arith.index_cast %j : index to i64
    %sees = arith.cmpi sle, %n, %m : i64
"""
_CAUSAL = _INDICES + "    %masked = arith.select %sees, %0, %low : f32"
_WINDOW = (
    _INDICES
    + """\
    %far = arith.subi %m, %eight : i64
    %near = arith.cmpi sgt, %n, %far : i64
    %both = arith.andi %sees, %near : i1
    %masked = arith.select %both, %0, %low : f32"""
)
_CAPPED = """\
    %1 = arith.divf %0, %cap : f32
    %2 = math.tanh %1 : f32
    %masked = arith.mulf %2, %cap : f32"""

_ADDED = "    %masked = arith.addf %0, %b : f32"
_SELECTED = "    %masked = arith.select %sees, %0, %low : f32"
# By name: its shape, and what of it is read; the code that makes %masked of %0.
_MASKS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "none": ("", (), "    %masked = arith.addf %0, %zero : f32"),
    "causal": ("", (), _CAUSAL),
    "window": ("", (), _WINDOW),
    "capped": ("", (), _CAPPED),
    "additive": ("b 1 m n f32", ("b, 0, m, n",), _ADDED),
    "columns": ("b n f32", ("b, n",), _ADDED),
    "boolean": ("m n i1", ("m, n",), _SELECTED.replace("%sees", "%b")),
    "temperature": ("f32", ("",), "    %masked = arith.mulf %0, %b : f32"),
    "slopes": (
        "h f32",
        ("h",),
        _INDICES
        + """\
    %far = arith.subi %n, %m : i64
    %distance = arith.sitofp %far : i64 to f32
    %lost = arith.mulf %distance, %b : f32
    %masked = arith.addf %0, %lost : f32""",
    ),
    "lengths": (
        "b i64",
        ("b",),
        f"{_INDICES}    %near = arith.cmpi slt, %n, %b : i64\n"
        "    %masked = arith.select %near, %0, %low : f32",
    ),
    "positions": (
        "b m i32",
        ("b, m",),
        """\
    %j = linalg.index 3 : index
    %n = arith.index_cast %j : index to i32
    %sees = arith.cmpi sle, %n, %b : i32
"""
        + _SELECTED,
    ),
    "cached": (
        "b i64",
        ("b",),
        """\
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %before = arith.index_cast %b : i64 to index
    %m = arith.addi %before, %i : index
    %sees = arith.cmpi sle, %j, %m : index
"""
        + _SELECTED,
    ),
    "bytes": (
        "b n i8",
        ("b, n",),
        """\
    %none = arith.constant 0 : i8
    %sees = arith.cmpi ne, %b, %none : i8
"""
        + _SELECTED,
    ),
    "segments": (
        "b n i64",
        ("b, m", "b, n"),
        f"    %sees = arith.cmpi eq, %b, %b1 : i64\n{_SELECTED}",
    ),
}

# "inverse": what does not exist as a column must not become an infinite weight.
_MAPPED = {
    "sigmoid": """\
    %0 = arith.negf %a : f32
    %1 = math.exp %0 : f32
    %2 = arith.addf %1, %one : f32
    %weight = arith.divf %one, %2 : f32""",
    "squared": """\
    %0 = arith.maximumf %a, %zero : f32
    %weight = arith.mulf %0, %0 : f32""",
    "decay": _INDICES
    + """\
    %far = arith.subi %n, %m : i64
    %distance = arith.sitofp %far : i64 to f32
    %lost = arith.mulf %distance, %rate : f32
    %left = math.exp2 %lost : f32
    %kept = arith.mulf %a, %left : f32
    %weight = arith.select %sees, %kept, %zero : f32""",
    "inverse": "    %weight = arith.divf %one, %a : f32",
}


def _parallel(loops: int, reductions: int = 0) -> str:
    kinds = ['"parallel"'] * loops + ['"reduction"'] * reductions
    return f"iterator_types = [{', '.join(kinds)}]"


def drawn(number: int) -> Form:
    """A form, by its number."""
    choose = random.Random(number)
    groups = choose.choice((1, 1, 2))
    return Form(
        batch=choose.choice((1, 2)),
        heads=groups * choose.choice((1, 2)),
        groups=groups,
        m=choose.choice((1, 7, 16, 24, 40, 64, 72, 130)),
        n=choose.choice((16, 40, 64, 72, 136)),
        k=16 * choose.choice((1, 2, 3, 4, 8)),
        d=16 * choose.choice((1, 2, 3, 4, 8)),
        dtype=choose.choice(("f16", "bf16")),
        mask=choose.choice(MASKS),
        tokens=choose.random() < 0.4,
        keys_first=choose.random() < 0.2,
        maximum=choose.choice(("maximumf", "maxnumf")),
        scale=choose.choice((0.125, 0.5, 3.0)),
        open=choose.choice(("", "", "b", "n", "bmn")),
    )


def drawn_map(number: int) -> Form:
    """A form that reduces no row, with more scores than operands and results."""
    choose = random.Random(number)
    groups = choose.choice((1, 1, 2))
    return Form(
        batch=choose.choice((1, 2)),
        heads=groups * choose.choice((1, 2)),
        groups=groups,
        m=choose.choice((144, 150, 200, 257)),
        n=choose.choice((136, 144, 200, 264)),
        k=choose.choice((16, 32)),
        d=choose.choice((16, 32)),
        dtype=choose.choice(("f16", "bf16")),
        mask=choose.choice([one for one in MASKS if one not in ("causal", "window")]),
        tokens=choose.random() < 0.4,
        keys_first=choose.random() < 0.2,
        scale=choose.choice((0.125, 0.5, 3.0)),
        weights=choose.choice(MAPS),
    )
