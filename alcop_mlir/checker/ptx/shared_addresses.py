"""Nobody knows where shared memory begins: all that is computed of its addresses are
other addresses, and each access is at one of a variable.

So addresses are known as numbers behind the beginning, and of nothing else that a
kernel computes it matters where that is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.instructions import Instruction, names_in, place_of
from alcop_mlir.errors import CertificateError

_BITS = 32  # of an address
# They leave none, and no number that is known.
_OPAQUE = ("st", "cvta")
# Registers that may hold addresses, and those that may hold something else.
_Held = tuple[set[str], set[str]]


def check_addresses(flow: Flow, variables: Collection[str]) -> None:
    """CertificateError where the code does not hold to that."""
    reads = [[_names(one) for one in _values(ins)] for ins in flow.code]
    into: dict[int, _Held] = {0: ({*variables}, set())}
    sizes: dict[int, list[int]] = {}
    order = [block for block in reversed(flow.reached) if block != flow.end]
    while any(sizes.get(b) != [*map(len, into[b])] for b in order if b in into):
        for block in order:
            if block in into and sizes.get(block) != [*map(len, into[block])]:
                sizes[block] = [*map(len, into[block])]
                held = _left(flow, block, reads, into[block])
                for one in flow.next[block]:
                    known = into.setdefault(one, (set(), set()))
                    known[0].update(held[0])
                    known[1].update(held[1])
    for block in order:
        _left(flow, block, reads, into[block], _check)


def _left(
    flow: Flow,
    block: int,
    reads: list[list[list[str]]],
    held: _Held,
    check: Callable[[Instruction, list[bool], _Held], None] | None = None,
) -> _Held:
    """What registers hold at the end of a block; check: sees each instruction."""
    held = {*held[0]}, {*held[1]}
    for pc in range(block, flow.stop[block]):
        ins = flow.code[pc]
        read = [not held[0].isdisjoint(one) for one in reads[pc]]
        if check is not None:
            check(ins, read, held)
        is_address = any(read) and ins.parts[0] not in _OPAQUE
        now, other = held if is_address else held[::-1]
        now.update(ins.results)
        if not ins.guard:
            other.difference_update(ins.results)
    return held


def _check(ins: Instruction, read: list[bool], held: _Held) -> None:
    if any(name in held[0] and name in held[1] for name in ins.reads):
        raise CertificateError(ins.told("a shared address, or none"))
    if any(read) and ins.parts[0] not in _OPAQUE and not _adds(ins, read):
        raise CertificateError(ins.told("nobody knows where shared memory begins"))
    place = next((o for o in ins.operands if o.startswith("[")), "")
    found = place_of(place)
    if ins.is_access and (found is None or found[0] not in held[0]):
        raise CertificateError(ins.told("a shared address of no variable"))


def _values(ins: Instruction) -> Sequence[str]:
    """The operands that it reads, but for where it accesses memory."""
    return ins.operands[1:] if ins.results else ins.operands


def _names(operand: str) -> list[str]:
    return [] if operand.startswith("[") else [*names_in(operand)]


def _adds(ins: Instruction, read: list[bool]) -> bool:
    """Whether it leaves an address that it reads, plus what is none.

    read: whether operands are addresses
    """
    name, widths = ins.parts[0], [int(p[1:]) for p in ins.parts if p[1:].isdigit()]
    if len(ins.results) != 1 or min(widths, default=0) < _BITS:
        return False
    if name == "selp":
        return read == [True, True, False]
    place = {"mov": 0, "cvt": 0, "shfl": 0, "sub": 0, "mad": 2}.get(name, -1)
    return sum(read) == 1 and (name == "add" or (place >= 0 and read[place]))
