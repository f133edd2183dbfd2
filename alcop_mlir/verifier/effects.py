"""What kernels write, and what races in them: `races`, `effects` and `changed`.

Kernels are played with all threads of a block (`threads`), with sizes that are small.
Of one kernel is found what races in it. Of a kernel before and after a pass also
whether it writes the same to global memory: what each element is computed from, by
which ops. Where that is not known, nothing is found.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside
from alcop_mlir.verifier.thread_accesses import Unknown
from alcop_mlir.verifier.thread_values import Dim3, ThreadValues, name_of
from alcop_mlir.verifier.threads import Player
from alcop_mlir.verifier.values import Values, constant
from alcop_mlir.verifier.violations import Violation

_KERNELS = ("gpu.func", "gpu.launch")
_TRIPS = (1, 5)  # of loops whose sizes are not known
_MOST_KERNELS = 16  # of a module; others are not compared
_ONE_THREAD = (1, 1, 1)
_LAUNCH_SIZES = 3  # operands of gpu.launch, after those of the grid
Given = Mapping[Hashable, int]


@dataclass(frozen=True)
class Run:
    """What one run of a kernel wrote: by argument and element."""

    given: Given
    written: Mapping[Any, Any]


Effects = Mapping[Hashable, list[Run]]  # of kernels, by their names


def races(kernel: ir.Operation) -> list[Violation]:
    """What races in a kernel, and what it accesses outside of its shared memory.

    Sizes with which it does so may be wrong; but one iteration each is always possible.
    """
    block = _block_of(kernel) or _ONE_THREAD
    outside: list[Violation] = []
    for given in reversed([*_given(kernel)]):
        player = Player(ThreadValues(kernel, block, given, made_up=False))
        player.play()
        outside = list(player.accesses.outside.values())
        if not outside:
            return list(player.accesses.found.values())
    return outside


def effects(op: ir.Operation) -> Effects:
    """What the kernels in `op` write; nothing for those of which that is not known."""
    found = {}
    for name, kernel in _kernels(op):
        runs = [_effects(kernel, given) for given in _given(kernel)]
        found[name] = [run for run in runs if run is not None]
    return found


def changed(before: Effects, op: ir.Operation) -> Iterator[Violation]:
    """Kernels in `op` that write something else than `before`, or race now."""
    for name, kernel in _kernels(op):
        for run in before.get(name, ()):
            wrong = _change(kernel, run)
            if wrong is not None:
                yield wrong
                break


def _change(kernel: Any, run: Run) -> Violation | None:
    player = _played(kernel, run.given)
    if player is None:
        return None
    for wrong in (*player.accesses.found.values(), *player.accesses.outside.values()):
        return wrong
    written = _written(player)
    for key in dict.fromkeys([*run.written, *written]):
        if key not in written or run.written.get(key) != written[key][0]:
            (_, argument), element = key
            op = written[key][1] if key in written else kernel
            why = (
                f"element {element} of argument {argument} is not what it was before "
                f"the pass, in a run with {_sizes(run.given)}"
            )
            return Violation(op, why)
    return None


def _effects(kernel: Any, given: Given) -> Run | None:
    player = _played(kernel, given)
    if player is None or player.accesses.found or player.accesses.outside:
        return None
    return Run(given, {key: one[0] for key, one in _written(player).items()})


def _played(kernel: Any, given: Given) -> Player | None:
    block = _block_of(kernel)
    if block is None:
        return None
    player = Player(ThreadValues(kernel, block, given, made_up=True))
    try:
        player.play()
    except Unknown:
        return None
    return player if player.is_whole else None


def _written(player: Player) -> dict[Any, tuple[Any, Any]]:
    """Values, and the ops that wrote them, of what the kernel was given."""
    return {
        (name, number): (one.value, one.op)
        for name, space in player.memory.spaces.items()
        for number, one in space.items()
        if one.op is not None and name[0] == "argument"
    }


def _kernels(op: ir.Operation) -> Iterator[tuple[Hashable, Any]]:
    kernels = (one for one in (op.operation, *inside(op)) if one.name in _KERNELS)
    yield from enumerate(islice(kernels, _MOST_KERNELS))


def _given(kernel: Any) -> Iterator[Given]:
    """The sizes that make loops run so often."""
    values = Values([], [one for one in inside(kernel) if one.name == "scf.for"])
    for trips, assignment in enumerate(values.assignments(slots=1)):
        if trips in _TRIPS or not assignment:
            yield {name_of(one): number for one, number in assignment.items()}
        if trips == _TRIPS[-1]:
            return


def _sizes(given: Given) -> str:
    return (
        ", ".join(f"{name} = {number}" for name, number in given.items()) or "no sizes"
    )


def _block_of(kernel: Any) -> Dim3 | None:
    """The threads of a block along x, y and z; None where they are not known."""
    if kernel.name == "gpu.launch":
        sizes = [one for one in kernel.operands if isinstance(one.type, ir.IndexType)]
        x, y, z = (constant(one) for one in sizes[_LAUNCH_SIZES : _LAUNCH_SIZES + 3])
        return None if x is None or y is None or z is None else (x, y, z)
    if "known_block_size" not in kernel.attributes:
        return None
    x, y, z = kernel.attributes["known_block_size"]
    return x, y, z
