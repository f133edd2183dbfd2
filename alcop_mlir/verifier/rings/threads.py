"""Which threads of a block, or of a cluster of blocks, do the same: `Threads`, `lanes`.

A value that is computed of the number of a thread, of constants and by ops of a warp
(`gpu.shuffle` of one lane, `nvvm.elect.sync`) is known for each thread of the block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.rings.products import is_of_descriptors
from alcop_mlir.verifier.rings.unproven import Unproven
from alcop_mlir.verifier.values import constant, is_computable, rule_of

WARP = 32
_LAUNCH_SIZES = 3  # operands of gpu.launch, after those of the grid
_LAUNCH_THREADS = (3, 4, 5)  # arguments: the thread's number along x, y, z
_NUMBERS = ("gpu.thread_id", "nvvm.read.ptx.sreg.tid.x")
_OTHER_AXES = ("#gpu<dim y>", "#gpu<dim z>")
_LANES = ("gpu.lane_id", "nvvm.read.ptx.sreg.laneid")
PerThread = tuple[int, ...]


@dataclass
class Threads:
    """The values of a kernel that say which thread runs.

    block:  threads of a block
    blocks: of a cluster, along x; 1 without clusters
    """

    kernel: Any
    block: int
    blocks: int
    _known: dict[Any, int | PerThread | None] = field(default_factory=dict)

    @staticmethod
    def of(kernel: Any) -> Threads:
        """Of a kernel with blocks of whole warps in one line, else `Unproven`."""
        sizes = _block(kernel)
        if sizes is None or sizes[1:] != (1, 1) or sizes[0] % WARP:
            raise Unproven(kernel, "expected a known number of whole warps along x")
        clusters = _cluster(kernel)
        if clusters is None or clusters[1:] != (1, 1):
            raise Unproven(kernel, "expected clusters of known sizes along x")
        return Threads(kernel, sizes[0], clusters[0])

    @property
    def count(self) -> int:
        """Threads of the cluster, numbered block by block."""
        return self.block * self.blocks

    def values(self, value: ir.Value) -> int | PerThread | None:
        """What a value is, in all threads or in each; None where it depends on more."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: ir.Value) -> int | PerThread | None:
        owner = value.owner
        if isinstance(owner, ir.Block):
            is_launch = owner.owner.operation.name == "gpu.launch"
            if not is_launch or value.arg_number not in _LAUNCH_THREADS:
                return None
            return self._along_x(value.arg_number == _LAUNCH_THREADS[0])
        op = owner.operation
        if op.name in _NUMBERS:
            return self._along_x(_is_x(op))
        if op.name == "gpu.cluster_block_id":
            ranks = [thread // self.block for thread in range(self.count)]
            return _alike(ranks) if _is_x(op) else 0
        if op.name in _LANES:
            return tuple(thread % WARP for thread in range(self.count))
        if op.name == "nvvm.elect.sync":
            return tuple(int(thread % WARP == 0) for thread in range(self.count))
        if op.name == "gpu.shuffle":
            return self._shuffled(op, value)
        if is_of_descriptors(op):
            return 0  # descriptors are looked at from the beginning of a buffer
        if not is_computable(op):
            return None
        return self._computed(op)

    def _along_x(self, is_x: bool) -> int | PerThread:
        return tuple(t % self.block for t in range(self.count)) if is_x else 0

    def _shuffled(self, op: Any, value: ir.Value) -> int | PerThread | None:
        """Of one lane to all of its warp."""
        if list(op.results).index(value):
            return 1  # valid
        lane, width = constant(op.operands[1]), constant(op.operands[2])
        given = self.values(op.operands[0])
        is_of_one = str(op.attributes["mode"]) == "#gpu<shuffle_mode idx>"
        if not is_of_one or lane is None or width != WARP or given is None:
            return None
        if isinstance(given, int):
            return given
        return _alike([given[t - t % WARP + lane] for t in range(self.count)])

    def _computed(self, op: Any) -> int | PerThread | None:
        operands = [self.values(operand) for operand in op.operands]
        if any(operand is None for operand in operands):
            return None
        rule = rule_of(op)
        if all(isinstance(operand, int) for operand in operands):
            return rule(*operands)
        rows = zip(
            *(
                [operand] * self.count if isinstance(operand, int) else operand or ()
                for operand in operands
            ),
            strict=True,
        )
        found = [rule(*row) for row in rows]
        return None if None in found else _alike([one or 0 for one in found])


def _alike(values: list[int]) -> int | PerThread:
    """One number where it is the same in all threads."""
    return values[0] if len(set(values)) == 1 else tuple(values)


@dataclass(frozen=True)
class Lanes:
    """Threads of a warp, or of several that are alike, that do the same.

    first:   one of them
    threads: how many they are
    warp:    number of the warp, or of those that are alike, among all
    block:   number of its block in the cluster
    """

    first: int
    threads: int
    warp: int
    block: int


def lanes(threads: Threads, signatures: Sequence[tuple[Any, ...]]) -> list[Lanes]:
    """The processes of a cluster: threads with equal signatures, warp by warp.

    Of warps that are alike the first stands for itself, and the second for all others:
    what orders these two orders any two.
    """
    warps = [
        (first // threads.block, tuple(signatures[first : first + WARP]))
        for first in range(0, threads.count, WARP)
    ]
    found: list[Lanes] = []
    seen: Counter[Any] = Counter()
    number = 0
    for place, warp in enumerate(warps):
        seen[warp] += 1
        if seen[warp] > 2:
            continue
        others = warps.count(warp) - 1
        alike = others if seen[warp] == 2 else 1
        block, of_lanes = warp
        for signature, count in Counter(of_lanes).items():
            first = place * WARP + of_lanes.index(signature)
            found.append(Lanes(first, count * alike, number, block))
        number += 1
    return found


def _is_x(op: Any) -> bool:
    has_axis = "dimension" in op.attributes
    return not has_axis or str(op.attributes["dimension"]) not in _OTHER_AXES


def _cluster(kernel: Any) -> tuple[int, ...] | None:
    """Blocks of a cluster along x, y and z; None where they are not known."""
    if kernel.name == "gpu.func":
        if "known_cluster_size" not in kernel.attributes:
            return (1, 1, 1)
        return tuple(kernel.attributes["known_cluster_size"])
    view = kernel.opview
    given = (view.clusterSizeX, view.clusterSizeY, view.clusterSizeZ)
    if given[0] is None:
        return (1, 1, 1)
    sizes = [constant(one) for one in given]
    return None if None in sizes else tuple(one or 0 for one in sizes)


def _block(kernel: Any) -> tuple[int, int, int] | None:
    """The threads of a block along x, y and z; None where they are not known."""
    if kernel.name == "gpu.launch":
        sizes = [one for one in kernel.operands if isinstance(one.type, ir.IndexType)]
        x, y, z = (constant(one) for one in sizes[_LAUNCH_SIZES : _LAUNCH_SIZES + 3])
        return None if x is None or y is None or z is None else (x, y, z)
    if "known_block_size" not in kernel.attributes:
        return None
    x, y, z = kernel.attributes["known_block_size"]
    return x, y, z
