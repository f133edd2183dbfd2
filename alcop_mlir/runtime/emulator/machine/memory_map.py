"""Where the variables of a kernel lie, and whether they fit.

PTX ISA "State Spaces". Only the shared variables that the kernel names are laid out, as
ptxas does with those of the module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.machine.memory import (
    STATIC_SHARED_LIMIT,
    TARGET_SHARED,
)
from alcop_mlir.runtime.emulator.ptx.program import Part, Program
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Module,
    Name,
    PtxKernel,
    PtxParameter,
    Variable,
)

FRAME_ALIGN = 16  # bytes: as far as PTX accesses need it


@dataclass(frozen=True)
class Frame:
    """What a function keeps in local memory: name -> offset, and bytes of all.

    The offsets are those from the start of local memory, or from that of the frame of
    a call, for a function with frames on the stack.
    """

    local: dict[str, int]
    size: int


@dataclass(frozen=True)
class MemoryMap:
    """Where the variables of a kernel lie.

    `shared`, `local`: name -> byte offset; `globals`: name -> device address;
    `parameters`: name -> offset in `parameter_bytes`; `functions`: name -> address;
    `frames`: of each part of the program. `sizes` of the variables and of the two
    memories are in bytes; the stack begins at `local_size`.
    """

    shared: dict[str, int]
    local: dict[str, int]
    globals: dict[str, int]
    parameters: dict[str, int]
    parameter_bytes: bytes
    shared_size: int
    local_size: int
    sizes: dict[str, int]
    functions: dict[str, int]
    frames: tuple[Frame, ...]

    def places(self, space: str) -> dict[str, int]:
        """Where the variables of a space lie; {} if they have no addresses there."""
        return getattr(self, {"global": "globals"}.get(space, space))

    def nearest(self, space: str, offset: int) -> str:
        """The variable of shared or local memory at or below `offset`, for messages."""
        table = self.shared if space == "shared" else self.local
        if not table:
            return f"no {space} variable is declared"
        below = [name for name, start in table.items() if start <= offset]
        name = max(
            below, key=table.__getitem__, default=min(table, key=table.__getitem__)
        )
        start, size = table[name], self.sizes.get(name, 0)
        if offset < start:
            return f"{start - offset} bytes before {name}"
        if offset >= start + size:
            return (
                f"{offset - start - size} bytes past the end of {name} ({size} bytes)"
            )
        return f"in {name} ({size} bytes)"


def map_memory(
    program: Program,
    module: Module,
    dynamic: int,
    parameter_bytes: bytes,
    placed: dict[str, int],
) -> MemoryMap:
    """Lays out the variables; `placed` are those of global memory with addresses.

    Raises `EmulationError` when the kernel needs more shared memory than a block has.
    """
    shared, shared_size = _shared_offsets(program, module, dynamic)
    frames, local_size = _frames(program.parts)
    variables = [*module.variables.values(), *_declared(program)]
    sizes = {v.name: v.size for v in variables}
    sizes |= {name: dynamic for name in shared if not sizes[name]}
    return MemoryMap(
        shared,
        frames[-1].local,
        placed,
        {p.name: p.offset for p in program.kernel.parameters},
        parameter_bytes,
        shared_size,
        local_size,
        sizes,
        program.addresses,
        tuple(frames),
    )


def _declared(program: Program) -> Iterable[Variable]:
    """The variables that the bodies of a program declare."""
    for part in program.parts:
        yield from part.function.variables.values()


def _frames(parts: Sequence[Part]) -> tuple[list[Frame], int]:
    """The frame of each part, and the bytes of those that are not on the stack."""
    frames: list[Frame] = []
    top = 0
    for part in parts:
        function, start = part.function, 0 if part.on_stack else top
        offsets, size = _lay_out_frame(function, start)
        frames.append(Frame(offsets, size - start))
        if not part.on_stack:
            top = size
    return frames, top


def _lay_out_frame(function: PtxKernel, start: int) -> tuple[dict[str, int], int]:
    """Parameters of the function, those of its calls, variables, from `start` on."""
    offsets: dict[str, int] = {}
    top = start
    given: list[PtxParameter] = []
    if not function.is_entry:
        given = [*function.results, *function.parameters]
    for one in given:
        if not one.in_register:
            top = -(-top // FRAME_ALIGN) * FRAME_ALIGN
            offsets[one.name] = top
            top += one.size
    top = -(-top // FRAME_ALIGN) * FRAME_ALIGN
    offsets |= {name: top + one.offset for name, one in function.passed.items()}
    top += function.passed_size
    inside = [v for v in function.variables.values() if v.space == "local"]
    for v in inside:
        top = -(-top // v.align) * v.align
        offsets[v.name] = top
        top += v.size
    return offsets, -(-top // FRAME_ALIGN) * FRAME_ALIGN


def _shared_offsets(
    program: Program, module: Module, dynamic: int
) -> tuple[dict[str, int], int]:
    """Offsets of the shared variables that the program uses, and the total size."""
    kernel = program.kernel
    used = _names_used(program)
    known = [v for v in module.variables.values() if v.name in used]
    known += _declared(program)
    shared = [v for v in known if v.space == "shared"]
    offsets, top = _lay_out([v for v in shared if not v.extern])
    if top > STATIC_SHARED_LIMIT:
        raise EmulationError(
            f"kernel {kernel.name} has {top} bytes of static shared memory; a block "
            f"may have at most {STATIC_SHARED_LIMIT} (use dynamic shared memory)"
        )
    externs = [v for v in shared if v.extern]
    align = max([v.align for v in externs], default=1)
    if externs or dynamic:
        top = -(-top // align) * align
    offsets.update({v.name: top for v in externs})
    limit = TARGET_SHARED[module.target.rstrip("af")]
    if top + dynamic > limit:
        raise EmulationError(
            f"kernel {kernel.name} with {dynamic} bytes of dynamic shared memory needs "
            f"{top + dynamic} bytes a block; {module.target} offers {limit}"
        )
    return offsets, top + dynamic


def _lay_out(variables: Sequence[Variable]) -> tuple[dict[str, int], int]:
    """Offsets of variables one after the other, aligned, and their total size."""
    offsets: dict[str, int] = {}
    top = 0
    for v in variables:
        top = -(-top // v.align) * v.align
        offsets[v.name] = top
        top += v.size
    return offsets, top


def _names_used(program: Program) -> set[str]:
    used: set[str] = set()
    for ins in program.code:
        for operand in ins.operands:
            if isinstance(operand, Name):
                used.add(operand.name)
            elif isinstance(operand, Address) and operand.base:
                used.add(operand.base.lstrip("&"))
    return used
