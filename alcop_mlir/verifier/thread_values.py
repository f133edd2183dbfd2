"""The values of a kernel, of all threads of a block at once.

Integers are computed. Other values are `made_up`, where that is asked for; else they
are not known. What `name_of` names is given.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside, is_workgroup
from alcop_mlir.verifier.made_up import (
    attributes,
    constant_value,
    fewer,
    hashed,
    stand_in,
)
from alcop_mlir.verifier.values import Values, constant, is_computable, rule_of
from alcop_mlir.verifier.views import Lanes, View, lifted, root_view, viewed

Dim3 = tuple[int, int, int]
LOADS = {"memref.load": 0, "vector.load": 0}
STORES = {"memref.store": 1, "vector.store": 1}
COPY = "nvgpu.device_async_copy"
_AXES = ("#gpu<dim x>", "#gpu<dim y>", "#gpu<dim z>")
_WARP = 32
_FUNCTIONS = ("func.func", "gpu.func")
_VIEWS = ("memref.subview", "memref.view")
_ALLOCATIONS = ("memref.alloc", "memref.alloca", "gpu.dynamic_shared_memory")
_OF_ALL_LANES = ("gpu.shuffle", "gpu.subgroup_reduce")
# Beginnings of the names of ops that compute, where no operand is a memref.
_PURE = (
    "arith.", "math.", "vector.", "index.", "complex.", "affine.", "ub.", "nvgpu.mma",
    "gpu.thread_id", "gpu.lane_id", "gpu.subgroup_id", "gpu.block_dim", *_OF_ALL_LANES,
)  # fmt: skip


def name_of(value: Any) -> Hashable | None:
    """The name of an integer that a kernel is given, which a pass does not change."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        is_given = owner.owner.operation.name in _FUNCTIONS
        return ("argument", value.arg_number) if is_given else None
    op = owner.operation
    if op.name in ("gpu.block_id", "gpu.grid_dim"):
        return (op.name, str(op.attributes["dimension"]))
    if op.name != "memref.dim":
        return None
    memref, dimension = name_of(op.operands[0]), constant(op.operands[1])
    return None if memref is None or dimension is None else (memref, dimension)


def is_computed(op: Any) -> bool:
    """Whether what `op` makes follows from its operands, and is all that it does."""
    if len(op.regions) or not len(op.results):
        return False
    if all(isinstance(one.type, ir.MemRefType) for one in op.results):
        return True
    if name_of(op.results[0]) is not None:
        return True
    has_memory = any("memref<" in str(one.type) for one in op.operands)
    return op.name.startswith(_PURE) and not has_memory


@dataclass
class ThreadValues:
    """Values while a kernel runs: see `Lanes`.

    given: integers by name
    """

    kernel: Any
    block: Dim3
    given: Mapping[Hashable, int]
    made_up: bool
    _known: dict[Any, Lanes] = field(default_factory=dict)
    _rules: dict[Any, Callable[..., Any]] = field(default_factory=dict)
    _names: dict[Any, int] = field(default_factory=dict)
    _whats: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self._needed = None if self.made_up else _needed(self.kernel)

    def set(self, values: Iterable[Any], lanes: Iterable[Lanes]) -> None:
        """What values are from now on."""
        self._known.update(zip(values, lanes, strict=True))

    def compute(self, op: Any, results: Iterable[Any]) -> None:
        """Run an op that `is_computed`."""
        if self._needed is None or not self._needed.isdisjoint(results):
            for result in results:
                self._known[result] = self._of_op(op, result)

    def at(self, value: Any) -> Lanes:
        """What a value is now."""
        if self._needed is not None and value not in self._needed:
            return None
        if value not in self._known:
            self._known[value] = self._from_outside(value)
        return self._known[value]

    def _from_outside(self, value: Any) -> Lanes:
        owner = value.owner
        if isinstance(value.type, ir.UnrankedMemRefType):
            return None
        if not isinstance(owner, ir.Block):
            return self._of_op(owner.operation, value)
        holder, number = owner.owner.operation, value.arg_number
        if holder.name == "gpu.launch" and number < 4 * 3:
            return self._of_launch(holder, number)
        if isinstance(value.type, ir.MemRefType):
            kind = "shared" if is_workgroup(value.type) else "argument"
            return root_view((kind, number), value.type)
        name = name_of(value)
        return None if name is None else self._given(name, value.type)

    def _of_launch(self, launch: Any, number: int) -> Lanes:
        kind, axis = divmod(number, 3)
        if kind == 1:
            return self._thread(axis)
        if kind == 3:
            return self.block[axis]
        return self._given((("block", "", "grid")[kind], axis), ir.IndexType.get())

    def _thread(self, axis: int) -> Lanes:
        x, y, _ = self.block
        below = (1, x, x * y)[axis]
        return [t // below % self.block[axis] for t in range(self.threads)]

    def _given(self, name: Hashable, kind: Any) -> Lanes:
        if name in self.given:
            return self.given[name]
        return stand_in(fewer(kind), hashed(name)) if self.made_up else None

    def _of_op(self, op: Any, value: Any) -> Lanes:
        """What an op without effect makes, of what its operands are now."""
        if isinstance(value.type, ir.MemRefType):
            return self._memref(op)
        own = self._own(op)
        if own is not None:
            return own
        name = name_of(value)
        if name is not None:
            return self._given(name, value.type)
        operands = [self.at(one) for one in op.operands]
        if is_computable(op) and isinstance(value.type, ir.IntegerType | ir.IndexType):
            rule = self._rules.get(op)
            if rule is None:
                rule = self._rules[op] = rule_of(op)
            return lifted(rule, operands, self.threads)
        if not self.made_up:
            return None
        if op.name == "arith.constant":
            return constant_value(op)
        what = self._whats.get(value)
        if what is None:
            what = hashed((op.name, attributes(op), value.result_number))
            self._whats[value] = what
        few = fewer(value.type)
        if op.name in _OF_ALL_LANES:
            operands = [tuple(one) if type(one) is list else one for one in operands]
            return [stand_in(few, what, t, *operands) for t in range(self.threads)]
        return lifted(lambda *each: stand_in(few, what, *each), operands, self.threads)

    def _own(self, op: Any) -> Lanes:
        """Which thread it is, or how many there are."""
        if op.name in ("gpu.thread_id", "gpu.block_dim"):
            axis = _AXES.index(str(op.attributes["dimension"]))
            is_id = op.name == "gpu.thread_id"
            return self._thread(axis) if is_id else self.block[axis]
        if op.name == "gpu.lane_id":
            return [t % _WARP for t in range(self.threads)]
        if op.name == "gpu.subgroup_id":
            return [t // _WARP for t in range(self.threads)]
        return None

    def _memref(self, op: Any) -> View | None:
        if op.name in _ALLOCATIONS:
            number = self._names.setdefault(op, len(self._names))
            is_private = op.name == "memref.alloca"
            return root_view(("made", number), op.results[0].type, is_private)
        if op.name == "memref.get_global":
            return root_view(("global", str(op.attributes["name"])), op.results[0].type)
        if not len(op.operands):
            return None
        return viewed(op, self.at(op.operands[0]), self.at, self.threads)


def _needed(kernel: Any) -> set[Any]:
    """The values that decide which ops run, and where they access memory."""
    wanted = list[Any]()
    ops = list(inside(kernel))
    for op in ops:
        if op.name == "scf.if":
            wanted.append(op.operands[0])
        elif op.name in (*LOADS, *STORES, COPY) or op.name in _VIEWS:
            wanted += [v for v in op.operands if isinstance(v.type, ir.IndexType)]
    loops = [op for op in ops if op.name == "scf.for"]
    memrefs = [
        value
        for op in (kernel, *ops)
        for value in (*op.operands, *op.results)
        if isinstance(value.type, ir.MemRefType)
    ]
    return {*Values(wanted, loops).needed, *memrefs}
