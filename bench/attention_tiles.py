"""Tile code of fused attention, as text: one block per tile of queries and head.

    scores = Q K' / sqrt(head), of which rows of a tile are held by a warp
    new largest = max(largest, scores of a row); weights = exp(scores - new largest)
    output = output * exp(largest - new largest) + weights V, and so the total

Powers are of two, and the scale is folded into their exponents. Causal attention is two
loops in turn: tiles of keys before those of the diagonal need no mask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

SHARED = "#gpu.address_space<workgroup>"
K_EXTENT = 16  # of mma.sync with 16-bit elements
_LOWEST = -1.0e30  # of scores that are masked


@dataclass(frozen=True)
class Attention:
    """softmax(Q K' / sqrt(head)) V for q, k, v, o: heads x size x head.

    block:  rows of Q, and rows of K and V, in a tile
    causal: row i sees the keys 0 to i only
    """

    heads: int
    size: int
    head: int
    block: tuple[int, int] = (64, 64)
    warps: int = 4
    kind: str = "f16"
    causal: bool = False

    def __post_init__(self) -> None:
        if any(self.size % extent for extent in self.block):
            raise ValueError(f"{self.size} rows in tiles of {self.block}")
        if self.block[0] % (16 * self.warps) or self.head % K_EXTENT:
            raise ValueError(f"{self.block} with heads of {self.head}, {self.warps}")

    def text(self) -> str:
        """A function of q, k, v and o with one `gpu.launch`."""
        return "\n".join(_Kernel(self).lines()) + "\n"

    @property
    def reads_queries_once(self) -> bool:
        """Whether a warp holds its rows of Q: 16 of up to 64 elements."""
        return self.block[0] // self.warps <= 16 and self.head <= 64


@dataclass
class _Kernel:
    """Writes the kernel; the values of loop `x` are named with `x`."""

    of: Attention
    out: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Rows of Q of a warp."""
        return self.of.block[0] // self.of.warps

    @property
    def array(self) -> str:
        """The type of q, k, v and o."""
        return f"memref<{self.of.heads}x{self.of.size}x{self.of.head}x{self.of.kind}>"

    @property
    def scores(self) -> str:
        """The type of a warp's scores."""
        return self.matrix(self.of.block[1])

    def matrix(self, columns: int, element: str = "f32") -> str:
        """The type of a matrix with a warp's rows."""
        return f"vector<{self.rows}x{columns}x{element}>"

    def line(self, element: str = "f32", extent: int = 0) -> str:
        """The type of a vector with an element per row, or of that extent."""
        return f"vector<{extent or self.rows}x{element}>"

    def lines(self) -> list[str]:
        """The text, line by line."""
        self._head()
        state = ["%zeros", "%lowest", "%none"]
        if self.of.causal:
            state = self._loop("a", ("%c0", "%m0"), state, masked=False)
            state = self._loop("b", ("%m0", "%end"), state, masked=True)
        else:
            state = self._loop("a", ("%c0", "%size"), state, masked=False)
        self._tail(state)
        return self.out

    def _head(self) -> None:
        of, scale = self.of, math.log2(math.e) / math.sqrt(self.of.head)
        (m, n), d = of.block, of.head
        arrays = ", ".join(f"%{name}: {self.array}" for name in "qkvo")
        constants = {"c0": 0, "c1": 1, "lanes": 32, "m": m, "n": n, "rows": self.rows}
        constants |= {"size": of.size, "blocks": of.size // m, "heads": of.heads}
        constants |= {"threads": 32 * of.warps}
        self._say(
            "#mk = affine_map<(m, n, k) -> (m, k)>",
            "#nk = affine_map<(m, n, k) -> (n, k)>",
            "#kn = affine_map<(m, n, k) -> (k, n)>",
            "#mn = affine_map<(m, n, k) -> (m, n)>",
            f"func.func @attention({arrays}) {{",
            *(f"%{k} = arith.constant {v} : index" for k, v in constants.items()),
            *(f"%k{k} = arith.constant {k} : index" for k in range(0, max(d, n), 16)),
            f"%h = arith.constant 0.0 : {of.kind}",
            f"%noscores = arith.constant dense<0.0> : {self.scores}",
            f"%masked = arith.constant dense<{_LOWEST:.1e}> : {self.scores}",
            f"%zeros = arith.constant dense<0.0> : {self.matrix(d)}",
            f"%lowest = arith.constant dense<{_LOWEST:.1e}> : {self.line()}",
            f"%none = arith.constant dense<0.0> : {self.line()}",
            f"%ones = arith.constant dense<1.0> : {self.line()}",
            f"%scale = arith.constant dense<{scale:.9e}> : {self.scores}",
            f"%scales = arith.constant dense<{scale:.9e}> : {self.line()}",
            "gpu.launch blocks(%bx, %by, %bz)"
            " in (%gx = %blocks, %gy = %heads, %gz = %c1)"
            " threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {",
            "%m0 = arith.muli %bx, %m : index",
            "%end = arith.addi %m0, %m : index",
            "%warp = arith.divui %tx, %lanes : index",
            "%w0 = arith.muli %warp, %rows : index",
            "%row0 = arith.addi %m0, %w0 : index",
            f"%sq = memref.alloc() : memref<{m}x{d}x{of.kind}, {SHARED}>",
        )
        self._copy("q", "m0", m, "sq", "")
        self._say("gpu.barrier")
        if of.reads_queries_once:
            self._read_queries("")
        if of.causal:
            self._number_rows()

    def _copy(self, array: str, first: str, rows: int, to: str, x: str) -> None:
        d, kind = self.of.head, self.of.kind
        tile = f"memref<{rows}x{d}x{kind}, strided<[{d}, 1], offset: ?>>"
        self._say(
            f"%g{array}{x} = memref.subview %{array}[%by, %{first}, 0]"
            f" [1, {rows}, {d}] [1, 1, 1] : {self.array} to {tile}",
            f"memref.copy %g{array}{x}, %{to}"
            f" : {tile} to memref<{rows}x{d}x{kind}, {SHARED}>",
        )

    def _read(self, name: str, buffer: str, at: str, shape: str, rows: int) -> None:
        kind, d = self.of.kind, self.of.head
        self._say(
            f"%{name} = vector.transfer_read %{buffer}[{at}], %h"
            f" {{in_bounds = [true, true]}}"
            f" : memref<{rows}x{d}x{kind}, {SHARED}>, vector<{shape}x{kind}>"
        )

    def _read_queries(self, x: str) -> None:
        for k in range(0, self.of.head, K_EXTENT):
            shape = f"{self.rows}x{K_EXTENT}"
            self._read(f"q{k}{x}", "sq", f"%w0, %k{k}", shape, self.of.block[0])

    def _number_rows(self) -> None:
        wide, standing = (self.matrix(n, "i32") for n in (self.of.block[1], 1))
        self._numbers("r", "%row0", self.rows, "")
        self._say(
            f"%rs = vector.shape_cast %rn : {self.line('i32')} to {standing}",
            f"%rowsof = vector.broadcast %rs : {standing} to {wide}",
        )

    def _numbers(self, name: str, first: str, count: int, x: str) -> None:
        """Numbers from `first` on, as i32: of half as many registers as index."""
        wide, narrow = self.line("index", count), self.line("i32", count)
        self._say(
            f"%{name}x{x} = vector.step : {wide}",
            f"%{name}i{x} = arith.index_cast %{name}x{x} : {wide} to {narrow}",
            f"%{name}f{x} = arith.index_cast {first} : index to i32",
            f"%{name}b{x} = vector.broadcast %{name}f{x} : i32 to {narrow}",
            f"%{name}n{x} = arith.addi %{name}i{x}, %{name}b{x} : {narrow}",
        )

    def _contract(
        self, result: str, given: tuple[str, str, str], b_map: str, types: list[str]
    ) -> None:
        a, b, accumulators = given
        self._say(
            f"%{result} = vector.contract {{indexing_maps = [#mk, {b_map}, #mn],"
            ' iterator_types = ["parallel", "parallel", "reduction"],'
            f" kind = #vector.kind<add>}} %{a}, %{b}, {accumulators}"
            f" : {types[0]}, {types[1]} into {types[2]}"
        )

    def _loop(
        self, x: str, bounds: tuple[str, str], state: list[str], masked: bool
    ) -> list[str]:
        (_, n), d, kind = self.of.block, self.of.head, self.of.kind
        output, line = self.matrix(d), self.line()
        buffer = f"memref<{n}x{d}x{kind}, {SHARED}>"
        carried = zip(("acc", "old", "sum"), state, strict=True)
        start = ", ".join(f"%{name}{x} = {value}" for name, value in carried)
        self._say(
            f"%sk{x} = memref.alloc() : {buffer}",
            f"%sv{x} = memref.alloc() : {buffer}",
            f"%res{x}:3 = scf.for %n0{x} = {bounds[0]} to {bounds[1]} step %n"
            f" iter_args({start}) -> ({output}, {line}, {line}) {{",
        )
        self._copy("k", f"n0{x}", n, f"sk{x}", x)
        self._copy("v", f"n0{x}", n, f"sv{x}", x)
        self._say("gpu.barrier")
        scores = self._scores(x)
        if masked:
            scores = self._mask(scores, x)
        self._weights(scores, x)
        result = self._outputs(x)
        self._say(
            "gpu.barrier",
            f"scf.yield %{result}, %new{x}, %total{x} : {output}, {line}, {line}",
            "}",
        )
        return [f"%res{x}#{number}" for number in range(3)]

    def _scores(self, x: str) -> str:
        n, last = self.of.block[1], "%noscores"
        own = "" if self.of.reads_queries_once else x
        if own:
            self._read_queries(x)
        types = [
            self.matrix(K_EXTENT, self.of.kind),
            f"vector<{n}x{K_EXTENT}x{self.of.kind}>",
            self.scores,
        ]
        for k in range(0, self.of.head, K_EXTENT):
            self._read(f"fk{k}{x}", f"sk{x}", f"%c0, %k{k}", f"{n}x{K_EXTENT}", n)
            given = (f"q{k}{own}", f"fk{k}{x}", last)
            self._contract(f"s{k}{x}", given, "#nk", types)
            last = f"%s{k}{x}"
        return last

    def _mask(self, scores: str, x: str) -> str:
        n = self.of.block[1]
        wide = self.matrix(n, "i32")
        self._numbers("c", f"%n0{x}", n, x)
        self._say(
            f"%cols{x} = vector.broadcast %cn{x} : {self.line('i32', n)} to {wide}",
            f"%sees{x} = arith.cmpi sle, %cols{x}, %rowsof : {wide}",
            f"%sm{x} = arith.select %sees{x}, {scores}, %masked"
            f" : {self.matrix(n, 'i1')}, {self.scores}",
        )
        return f"%sm{x}"

    def _weights(self, scores: str, x: str) -> None:
        line, fast = self.line(), "fastmath<afn>"
        self._say(
            f"%mx{x} = vector.multi_reduction <maxnumf>, {scores}, %lowest [1]"
            f" : {self.scores} to {line}",
            f"%ms{x} = arith.mulf %mx{x}, %scales : {line}",
            f"%new{x} = arith.maxnumf %ms{x}, %old{x} : {line}",
            f"%ng{x} = arith.negf %new{x} : {line}",
        )
        self._broadcast(f"nb{x}", f"ng{x}", self.scores)
        self._say(
            f"%ex{x} = math.fma {scores}, %scale, %nb{x} : {self.scores}",
            f"%w{x} = math.exp2 %ex{x} {fast} : {self.scores}",
            f"%df{x} = arith.subf %old{x}, %new{x} : {line}",
            f"%al{x} = math.exp2 %df{x} {fast} : {line}",
            f"%su{x} = arith.mulf %sum{x}, %al{x} : {line}",
            f"%total{x} = vector.multi_reduction <add>, %w{x}, %su{x} [1]"
            f" : {self.scores} to {line}",
        )

    def _broadcast(self, result: str, rows: str, kind: str) -> None:
        standing = self.matrix(1)
        self._say(
            f"%{result}s = vector.shape_cast %{rows} : {self.line()} to {standing}",
            f"%{result} = vector.broadcast %{result}s : {standing} to {kind}",
        )

    def _outputs(self, x: str) -> str:
        (_, n), d, kind = self.of.block, self.of.head, self.of.kind
        self._broadcast(f"ab{x}", f"al{x}", self.matrix(d))
        self._say(
            f"%o0{x} = arith.mulf %acc{x}, %ab{x} : {self.matrix(d)}",
            f"%wh{x} = arith.truncf %w{x} : {self.scores} to {self.matrix(n, kind)}",
        )
        part = self.matrix(K_EXTENT, kind)
        types = [part, f"vector<{K_EXTENT}x{d}x{kind}>", self.matrix(d)]
        last = f"o0{x}"
        for k in range(0, n, K_EXTENT):
            self._say(
                f"%p{k}{x} = vector.extract_strided_slice %wh{x} {{offsets = [0, {k}],"
                f" sizes = [{self.rows}, {K_EXTENT}], strides = [1, 1]}}"
                f" : {self.matrix(n, kind)} to {part}"
            )
            self._read(f"fv{k}{x}", f"sv{x}", f"%k{k}, %c0", f"{K_EXTENT}x{d}", n)
            given = (f"p{k}{x}", f"fv{k}{x}", f"%{last}")
            self._contract(f"o{k + 1}{x}", given, "#kn", types)
            last = f"o{k + 1}{x}"
        return last

    def _tail(self, state: list[str]) -> None:
        of = self.of
        output, half = self.matrix(of.head), self.matrix(of.head, of.kind)
        # A division per row, not per element: each is some twenty instructions.
        self._say(f"%l = arith.divf %ones, {state[2]} : {self.line()}")
        self._broadcast("lb", "l", output)
        self._say(
            f"%on = arith.mulf {state[0]}, %lb : {output}",
            f"%oh = arith.truncf %on : {output} to {half}",
            f"vector.transfer_write %oh, %o[%by, %row0, %c0]"
            f" {{in_bounds = [true, true]}} : {half}, {self.array}",
            "gpu.terminator",
            '} {alcop.kernel = "attention"}',
            "return",
            "}",
        )

    def _say(self, *lines: str) -> None:
        self.out.extend(lines)
