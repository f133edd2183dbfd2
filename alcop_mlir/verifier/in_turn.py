"""Whether a loop stores to what a later iteration reads: `is_read_first`.

For loops that work in place, some iterations are played, with some threads, and inner
loops. What an index is computed from outside of the loop is made up, alike for reads
and stores. It is enough if one dimension tells both apart.

    memref.load %A[%k, %t] ; memref.store %w, %A[%k, %t]     // rows 0, 1, 2 in turn
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside, root
from alcop_mlir.verifier.values import constant, is_computable, rule_of

_ITERATIONS = 9
_SAMPLES = 64  # of threads along a dimension, or of iterations: the first and the last
_MOST_THREADS = 1024
_FIRST_INDEX = {  # the number of the operand, by op
    "memref.load": 1,
    "vector.load": 1,
    "vector.maskedload": 1,
    "vector.transfer_read": 1,
    "memref.store": 2,
    "vector.store": 2,
    "vector.transfer_write": 2,
}
_KERNELS = ("gpu.func", "gpu.launch")
_COPY = "nvgpu.device_async_copy"
_WHOLE = ("memref.copy", "linalg.copy", "alcop.copy", "alcop.gather")
_CASTS = ("memref.cast", "memref.assume_alignment")
_THREADS = tuple(f"#gpu<dim {axis}>" for axis in "xyz")
_LAUNCH_THREADS, _LAUNCH_SIZES = 3, 3  # arguments; operands, after those of the grid
Numbers = dict[Any, int]


@dataclass(frozen=True)
class _Span:
    """`size` indices from a sum of parts: each a value, or a number, so many times."""

    parts: tuple[tuple[int, Any], ...]
    size: int

    def seen_through(self, offset: Any, stride: int) -> _Span:
        """These, as indices of what a view views."""
        parts = [(times * stride, part) for times, part in self.parts]
        return _Span(((1, offset), *parts), (self.size - 1) * stride + 1)


def is_read_first(
    loop: ir.Operation, read: tuple[Any, Any], write: tuple[Any, Any]
) -> bool:
    """Whether what `write` writes is read by `read` in no later iteration.

    Nor in the same one, unless the write comes after the read. Each is an op and the
    memref that it accesses.
    """
    whole = root(read[1])
    if whole != root(write[1]) or not whole.type.affine_map.is_permutation:
        return False
    spans, others = _spans(*read), _spans(*write)
    if spans is None or others is None:
        return False
    ops = [op.operation for op in loop.regions[0].blocks[0].operations]
    places = [
        next(n for n, one in enumerate(ops) if op == one or op in inside(one))
        for op in (read[0], write[0])
    ]
    gap = 1 if places[0] < places[1] else 0
    return any(
        _are_apart(_covered(loop, one), _covered(loop, other), gap)
        for one, other in zip(spans, others, strict=True)
    )


def _are_apart(
    read: list[set[int]] | None, written: list[set[int]] | None, gap: int
) -> bool:
    if read is None or written is None:
        return False
    return all(
        read[later].isdisjoint(written[earlier])
        for later in range(_ITERATIONS)
        for earlier in range(later - gap + 1)
    )


# -- which indices an op accesses ----------------------------------------------------


def _spans(op: Any, memref: ir.Value) -> list[_Span] | None:
    """The indices of `memref`'s root along each dimension; None where not known."""
    spans = _own_spans(op, memref)
    while spans is not None and memref != root(memref):
        view = memref.owner.operation
        if view.name == "memref.subview":
            spans = _of_subview(view, spans)
        elif view.name not in _CASTS:
            return None
        memref = view.operands[0]
    return spans


def _own_spans(op: Any, memref: ir.Value) -> list[_Span] | None:
    rank, shape = memref.type.rank, memref.type.shape
    if op.name in _WHOLE and memref.type.has_static_shape:
        return [_Span(((1, 0),), size) for size in shape]
    first, count = _FIRST_INDEX.get(op.name), 1
    if op.name == _COPY:
        # Target, its indices, source: the source is what is asked for.
        first = 2 + list(op.attributes["operandSegmentSizes"])[1]
        count = op.attributes["dstElements"].value
    if first is None:
        return None
    moved = op.operands[0] if op.name.endswith(("store", "write")) else None
    kind = (op.results[0] if moved is None else moved).type
    if isinstance(kind, ir.VectorType):
        if kind.rank != 1 or not _is_along_rows(op):
            return None
        count = kind.shape[0]
    indices = list(op.operands)[first : first + rank]
    sizes = [*[1] * (rank - 1), count]
    return [_Span(((1, i),), n) for i, n in zip(indices, sizes, strict=True)]


def _is_along_rows(op: Any) -> bool:
    if "permutation_map" not in op.attributes:
        return True
    affine_map = op.attributes["permutation_map"].value
    return [str(one) for one in affine_map.results] == [f"d{affine_map.n_dims - 1}"]


def _of_subview(view: Any, spans: Sequence[_Span]) -> list[_Span] | None:
    values = iter(list(view.operands)[1:])
    dynamic = ir.ShapedType.get_dynamic_size()
    offsets, sizes, strides = (
        [next(values) if n == dynamic else n for n in view.attributes[f"static_{kind}"]]
        for kind in ("offsets", "sizes", "strides")
    )
    if not all(isinstance(stride, int) for stride in strides):
        return None
    inner = list(zip(view.results[0].type.shape, spans, strict=True))
    found = []
    for offset, size, stride in zip(offsets, sizes, strides, strict=True):
        span = _Span(((1, 0),), 1)  # a dimension that is dropped
        if inner and (not isinstance(size, int) or inner[0][0] == size):
            _, span = inner.pop(0)
        found.append(span.seen_through(offset, stride))
    return found


# -- playing -------------------------------------------------------------------------


def _covered(loop: Any, span: _Span) -> list[set[int]] | None:
    """The indices of each iteration, of any thread; None where one is not known."""
    play = _Play(loop)
    found: list[set[int]] = []
    for number in range(_ITERATIONS):
        indices: set[int] = set()
        for begin in play.sums(span, number):
            if begin is None:
                return None
            indices.update(range(begin, begin + span.size))
        found.append(indices)
    return found


@dataclass(frozen=True)
class _Play:
    """Values of indices in iterations of `loop`; `made` numbers what is made up."""

    loop: Any
    made: Numbers = field(default_factory=dict)

    def sums(self, span: _Span, number: int) -> Iterator[int | None]:
        """Where `span` begins in the iteration of that number, for each choice."""
        block = self.loop.regions[0].blocks[0]
        lower, _, step = list(self.loop.operands)[:3]
        chosen = self._chosen([*(part for _, part in span.parts), lower, step])
        for choice in product(*chosen.values()):
            known: dict[Any, int | None] = dict(zip(chosen, choice, strict=True))
            begin, growth = self._value(lower, known), self._value(step, known)
            if begin is None or growth is None:
                yield None
                return
            known[block.arguments[0]] = begin + number * growth
            parts = [(n, self._value(part, known)) for n, part in span.parts]
            values = [None if value is None else n * value for n, value in parts]
            yield None if None in values else sum(filter(None, values))

    def _chosen(self, values: Sequence[Any]) -> dict[Any, Sequence[int]]:
        """What each thread id, and index of an inner loop, may be."""
        pending = [value for value in values if not isinstance(value, int)]
        seen: dict[Any, Sequence[int]] = {}
        found: dict[Any, Sequence[int]] = {}
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen[value] = ()
            choices = self._choices(value)
            if choices is not None:
                found[value] = choices
            elif not isinstance(value.owner, ir.Block):
                pending += value.owner.operation.operands
        return found

    def _choices(self, value: Any) -> Sequence[int] | None:
        owner = value.owner
        op = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
        if not isinstance(owner, ir.Block):
            if op.name != "gpu.thread_id":
                return None
            axis = _THREADS.index(str(op.attributes["dimension"]))
            return _sampled(range(_block_size(op, axis)))
        if op.name == "gpu.launch" and 0 <= value.arg_number - _LAUNCH_THREADS <= 2:
            axis = value.arg_number - _LAUNCH_THREADS
            return _sampled(range(_block_size(value.owner.operations[0], axis)))
        is_inner = op.name == "scf.for" and not value.arg_number and self._has(op)
        return _sampled(_trips(op)) if is_inner else None

    def _has(self, op: Any) -> bool:
        return op in inside(self.loop)

    def _value(self, value: Any, known: dict[Any, int | None]) -> int | None:
        if isinstance(value, int):
            return value
        if value in known:
            return known[value]
        owner = value.owner
        if isinstance(owner, ir.Block):
            op = owner.owner.operation
            is_inside = op == self.loop or self._has(op)
            return None if is_inside else self._made_up(value, [])
        op = owner.operation
        operands = [self._value(one, known) for one in op.operands]
        if is_computable(op):
            found = rule_of(op)(*operands)
        else:
            found = None if self._has(op) else self._made_up(value, operands)
        known[value] = found
        return found

    def _made_up(self, value: Any, operands: Sequence[int | None]) -> int:
        """A number that depends on the value and on what it is computed from."""
        own = self.made.setdefault(value, 5 * len(self.made) + 3)
        return own + sum(7 * (one or 0) for one in operands)


def _trips(loop: Any) -> range | None:
    """The indices of an inner loop; None where they are not known."""
    lower, upper, step = (constant(one) for one in list(loop.operands)[:3])
    if lower is None or upper is None or step is None:
        return None
    return range(lower, upper, step)


def _sampled(numbers: range | None) -> Sequence[int] | None:
    if numbers is None:
        return None
    half = _SAMPLES // 2
    few = len(numbers) <= _SAMPLES
    return numbers if few else [*numbers[:half], *numbers[-half:]]


def _block_size(op: Any, axis: int) -> int:
    """Threads along an axis of the block that runs `op`; the most where not known."""
    kernel = op.parent
    while kernel is not None and kernel.operation.name not in (
        "gpu.func",
        "gpu.launch",
    ):
        kernel = kernel.operation.parent
    if kernel is None:
        return _MOST_THREADS
    if kernel.operation.name == "gpu.launch":
        sizes = [v for v in kernel.operands if isinstance(v.type, ir.IndexType)]
        known = constant(sizes[_LAUNCH_SIZES + axis])
        return _MOST_THREADS if known is None else known
    attributes = kernel.operation.attributes
    if "known_block_size" not in attributes:
        return _MOST_THREADS
    return attributes["known_block_size"][axis]
