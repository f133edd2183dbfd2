"""torch-mlir's `tm_tensor.attention`, written out as ops of linalg, in text.

    %r = tm_tensor.attention ins(%q, %k, %v, %mask : ...) outs(%e : ...) -> tensor<...>

is softmax(q k^T / sqrt(length of a row of q) + mask) v, for each matrix of a batch; the
mask may lack. Bindings of upstream MLIR do not know its dialect, so that no parser
gets to see it. Softmax is in f32, as it is where PyTorch's attention is decomposed.

Source: AttentionOp in torch-mlir, lib/Dialect/TMTensor/IR/TMTensorOps.cpp.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen

_NAME = b"tm_tensor.attention"
_VALUE, _TYPE = r"%[\w$.#-]+", r"tensor<[^<>]*>"
_OP = re.compile(
    rf"(?P<result>{_VALUE})\s*=\s*tm_tensor\.attention\s+"
    rf"ins\((?P<inputs>{_VALUE}(?:\s*,\s*{_VALUE})*)\s*:\s*(?P<types>[^()]*)\)\s*"
    rf"outs\({_VALUE}\s*:\s*{_TYPE}\)\s*->\s*(?P<type>{_TYPE})"
)
_SHAPE = re.compile(r"tensor<((?:(?:\d+|\?)x)+)(f16|bf16|f32)>")
_ROLES = ("queries", "keys", "values", "mask")
_UNKNOWN = "?"
_WIDE = "f32"


def written_out(text: bytes, place: str) -> bytes:
    """The text with such ops as ops of linalg, each on the line where it began.

    place: the file, for ConfigError at an op whose shapes contradict, or whose sizes or
    types no kernel has
    """
    if _NAME not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        before = match.string[: match.start()]
        column = match.start() - before.rfind("\n")
        op = _read(match, f"{place}:{before.count(chr(10)) + 1}:{column}")
        # Later lines keep their numbers.
        return _written(op) + "\n" * match[0].count("\n")

    whole = text.decode(errors="surrogateescape")
    return _OP.sub(replaced, whole).encode(errors="surrogateescape")


@frozen
class _Tensor:
    """A value; sizes are numbers, or "?"."""

    name: str
    sizes: tuple[str, ...]
    element: str

    @property
    def type(self) -> str:
        return _type(self.sizes, self.element)


@frozen
class _Attention:
    """One op: queries ... x M x K, keys ... x N x K, values ... x N x D."""

    result: str
    type: str
    queries: _Tensor
    keys: _Tensor
    values: _Tensor
    mask: _Tensor | None = None


def _written(op: _Attention) -> str:
    """Its ops, on one line."""
    q, k, v = op.queries, op.keys, op.values
    batch = [f"b{number}" for number in range(len(q.sizes) - 2)]
    m, n, inner = "mnk"
    loops = [*batch, m, n]
    ops = _Ops(f"%of_{op.result[1:]}_", {})
    for operand, of in ((q, (m, inner)), (k, (n, inner))):
        ops.learn(operand, [*batch, *of])
    scores = [q.sizes[:-1], k.sizes[-2:-1]]
    wide = ops.tensor("s", scores, _WIDE)
    add = "%t = arith.mulf {0}, {1} : f32 %y = arith.addf %o, %t : f32"
    ops.generic(wide, loops, [(q, [*batch, m, inner]), (k, [*batch, n, inner])], add)
    scale = f"{1 / math.sqrt(int(q.sizes[-1])):.9e}"
    number = f"{ops.prefix}scale"
    ops.add(f"{number} = arith.constant {scale} : f32")
    body, read = f"%y = arith.mulf {{0}}, {number} : f32", [(wide, loops)]
    if op.mask is not None:
        read.append((op.mask, loops[len(loops) - len(op.mask.sizes) :]))
        body = body.replace("%y", "%t") + " %y = arith.addf %t, {1} : f32"
    scaled = ops.tensor("x", scores, _WIDE)
    ops.generic(scaled, loops, read, body)
    powers = ops.tensor("w", scores, _WIDE)
    ops.add(
        f"{powers.name} = linalg.softmax dimension({len(loops) - 1}) "
        f"ins({scaled.name} : {wide.type}) outs({ops.empty(powers, loops)} : "
        f"{wide.type}) -> {wide.type}"
    )
    weights = ops.tensor("p", scores, q.element)
    ops.generic(weights, loops, [(powers, loops)], "")
    ops.learn(v, [*batch, inner, n])
    out = [q.sizes[:-1], v.sizes[-1:]]
    total = ops.tensor("o", out, _WIDE)
    ops.generic(
        total, loops, [(weights, [*batch, m, inner]), (v, [*batch, inner, n])], add
    )
    made = ops.tensor("r", out, q.element)
    ops.generic(made, loops, [(total, loops)], "")
    if made.type == op.type:
        ops.lines[-1] = ops.lines[-1].replace(f"{made.name} =", f"{op.result} =")
    else:
        ops.add(f"{op.result} = tensor.cast {made.name} : {made.type} to {op.type}")
    return " ".join(ops.lines)


@dataclass
class _Ops:
    """Writes ops.

    known: the tensor and dimension that has the size of each loop
    """

    prefix: str
    known: dict[str, tuple[_Tensor, int]]
    lines: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.lines.append(text)

    def learn(self, tensor: _Tensor, loops: list[str]) -> None:
        self.known.update({one: (tensor, n) for n, one in enumerate(loops)})

    def tensor(self, name: str, sizes: list[tuple[str, ...]], element: str) -> _Tensor:
        return _Tensor(self.prefix + name, tuple(sum(sizes, ())), element)

    def empty(self, made: _Tensor, loops: list[str]) -> str:
        """A tensor without values like another one; its name."""
        name, sizes = f"{made.name}_empty", []
        for size, loop in zip(made.sizes, loops, strict=True):
            if size == _UNKNOWN:
                source, at = self.known[loop]
                self.add(f"{name}{loop}i = arith.constant {at} : index")
                self.add(
                    f"{name}{loop} = tensor.dim {source.name}, {name}{loop}i "
                    f": {source.type}"
                )
                sizes.append(name + loop)
        self.add(f"{name} = tensor.empty({', '.join(sizes)}) : {made.type}")
        return name

    def generic(
        self,
        made: _Tensor,
        loops: list[str],
        read: list[tuple[_Tensor, list[str]]],
        body: str,
    ) -> None:
        """An op of f32; with a loop that the result lacks, it starts from 0.

        body: makes %y of {0}, {1} and %o; without one, %y is {0}
        """
        out = self.empty(made, loops)
        reduced = [one for _, of in read for one in of if one not in loops]
        every = list(dict.fromkeys([*loops, *reduced]))
        if reduced:
            out = self._zeros(made, out)
        tensors = [tensor for tensor, _ in read]
        maps = ", ".join(_map(every, of) for of in (*(of for _, of in read), loops))
        kinds = ", ".join(_iterator(one in loops) for one in every)
        self.add(
            f"{made.name} = linalg.generic {{indexing_maps = [{maps}], "
            f"iterator_types = [{kinds}]}} "
            f"ins({', '.join(one.name for one in tensors)} : "
            f"{', '.join(one.type for one in tensors)}) outs({out} : {made.type}) "
            f"{{ {_block(made, tensors, body)} }} -> {made.type}"
        )

    def _zeros(self, made: _Tensor, empty: str) -> str:
        """The empty tensor, filled; its name."""
        zero, filled = f"{made.name}_zero", f"{made.name}_filled"
        self.add(f"{zero} = arith.constant 0.0 : f32")
        self.add(
            f"{filled} = linalg.fill ins({zero} : f32) outs({empty} : {made.type}) "
            f"-> {made.type}"
        )
        return filled


def _block(made: _Tensor, read: list[_Tensor], body: str) -> str:
    """The block of an op; elements are widened before it, and rounded after it.

    Names begin with that of the result, as a block sees all of the function's.
    """
    code, names, arguments = [], [], []
    for number, tensor in enumerate(read):
        names.append(f"%{number}")
        arguments.append(f"%{number}: {tensor.element}")
        if tensor.element != _WIDE:
            names[-1] = f"%w{number}"
            code.append(f"%w{number} = arith.extf %{number} : {tensor.element} to f32")
    code.append(body.format(*names))
    last = "%y" if body else names[0]
    if made.element != _WIDE:
        code.append(f"%n = arith.truncf {last} : f32 to {made.element}")
        last = "%n"
    arguments.append(f"%o: {made.element}")
    code.append(f"linalg.yield {last} : {made.element}")
    text = f"^bb0({', '.join(arguments)}): {' '.join(code)}"
    return re.sub(r"%(?=\w{1,2}\b)", f"{made.name}_", text)


def _read(match: re.Match[str], at: str) -> _Attention:
    """The op that text is. ConfigError at it."""
    names = re.findall(_VALUE, match["inputs"])
    types = re.findall(_TYPE, match["types"])
    if len(names) not in (3, 4) or len(types) != len(names):
        raise _error(at, f"has {len(names)} inputs of {len(types)} types", "3 or 4")
    operands: list[_Tensor] = []
    for name, kind, role in zip(names, types, _ROLES, strict=False):
        found = _SHAPE.fullmatch(kind)
        if found is None:
            raise _error(at, f"{role} are {kind}", "a tensor of f16, bf16 or f32")
        sizes, element = found.groups()
        operands.append(_Tensor(name, tuple(sizes.split("x")[:-1]), element))
    made = _Attention(match["result"], match["type"], *operands)
    _check(made, at)
    return made


def _check(op: _Attention, at: str) -> None:
    """ConfigError where shapes or types do not fit."""
    q, k, v, mask = op.queries, op.keys, op.values, op.mask
    if len(q.sizes) < 2 or q.sizes[-1] == _UNKNOWN:
        raise _error(at, f"queries are {q.type}", "rows of a known length")
    batch, columns, narrow = q.sizes[:-2], k.sizes[-2:-1], q.element
    wanted = {
        "keys": (k.type, _type((*batch, *columns, q.sizes[-1]), narrow)),
        "values": (v.type, _type((*batch, *columns, *v.sizes[-1:]), narrow)),
        "results": (op.type, _type((*q.sizes[:-1], *v.sizes[-1:]), narrow)),
    }
    if mask is not None:
        outer = batch if len(mask.sizes) > 2 else ()
        sizes = (*outer, q.sizes[-2], *columns)
        wanted["mask"] = (mask.type, _type(sizes, mask.element))
    for role, (found, expected) in wanted.items():
        if not _fits(found, expected):
            raise _error(at, f"{role} are {found}", expected)


def _fits(one: str, other: str) -> bool:
    """Whether types differ in sizes that are not known alone."""
    a, b = (kind.removeprefix("tensor<").split("x") for kind in (one, other))
    return len(a) == len(b) and all(
        x == y or _UNKNOWN in (x, y) for x, y in zip(a, b, strict=True)
    )


def _error(at: str, found: str, expected: str) -> ConfigError:
    return ConfigError(f"{at}: 'tm_tensor.attention': {found}, expected {expected}")


def _type(sizes: tuple[str, ...], element: str) -> str:
    return f"tensor<{'x'.join((*sizes, element))}>"


def _map(loops: list[str], results: list[str]) -> str:
    return f"affine_map<({', '.join(loops)}) -> ({', '.join(results)})>"


def _iterator(is_kept: bool) -> str:
    return '"parallel"' if is_kept else '"reduction"'
