"""One instruction of PTX text, and what it does, by its opcode."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from alcop_mlir.errors import CertificateError

NAME = re.compile(r"[%$_A-Za-z][\w$%]*(?:@\d+)?(?:\.[xyz])?")
NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?")
_PLACE = re.compile(r"\[\s*([%$\w@]+)\s*(?:\+\s*(-?\w+)|(-\s*\w+))?\s*\]")
ENDS = ("ret", "exit", "trap")
_MEMORY = ("ld", "ldu", "st", "atom", "red")
_HARMLESS = set(
    "cvta isspacep mov prefetch prefetchu applypriority createpolicy membar "
    "fence".split()
)
_FLOAT = re.compile(r"\b0[fFdDxX][0-9a-fA-F]+\b")
_FLOAT_BITS = {"0f": 32, "0d": 64}
_OPENING = frozenset("{[(")
# Opcodes that write no register.
_NO_RESULT = frozenset(
    "st bra bar barrier cp ret exit trap brkpt membar fence red prefetch prefetchu "
    "griddepcontrol discard applypriority nanosleep pmevent setmaxnreg stmatrix "
    "brx stackrestore".split()
)
_SPACES = {"shared", "global", "param", "local", "const"}
_ORDERING = ("bar", "barrier", "cp", "mbarrier", "wgmma", "tcgen05")


@dataclass(frozen=True, eq=False)
class Instruction:
    """`@!guard opcode operands;`, with operands as text.

    line, text: where and as what the file has it
    """

    guard: str
    is_negated: bool
    opcode: str
    operands: tuple[str, ...]
    line: int = 0
    text: str = ""

    def told(self, why: str) -> str:
        """What is wrong with it, as one line of a message."""
        return f"line {self.line}: {why}: {self.text}"

    @cached_property
    def parts(self) -> list[str]:
        """The opcode, split at its dots."""
        return self.opcode.split(".")

    @cached_property
    def results(self) -> list[str]:
        """The registers that it writes; `_` too, so that others keep their number."""
        first = self.parts[0]
        if first in _NO_RESULT or not self.operands:
            return []
        if first == "call" and not self.operands[0].startswith("("):
            return []
        if first == "wgmma":
            raise CertificateError(f"not modelled: {self.opcode}")
        return [*names_in(self.operands[0])]

    @cached_property
    def reads(self) -> set[str]:
        """The names of what it reads."""
        operands = self.operands[1:] if self.results else self.operands
        return {self.guard}.union(*map(names_in, operands))

    @cached_property
    def decides(self) -> set[str]:
        """The names of what it reads, but for what it stores."""
        if self.parts[0] not in ("st", "stmatrix"):
            return self.reads
        places = (o for o in self.operands if o.startswith("["))
        return {self.guard}.union(*map(names_in, places))

    @cached_property
    def sources(self) -> list[str]:
        """The operands that are no results, those in braces one by one."""
        return [o for one in self.operands[1:] for o in items(one)]

    @cached_property
    def moves(self) -> bool:
        """Whether the one register that it writes gets what its one operand holds: so
        are addresses of global memory what generic ones are, those of others not.
        """
        is_move = self.parts[0] == "mov"
        is_move |= self.parts[0] == "cvta" and "global" in self.parts
        return is_move and len(self.sources) == len(self.results) == 1

    def rounds(self, operand: str) -> bool:
        """Whether it reads a number with other bits than the text has."""
        kind = operand[:2].lower()
        return kind in _FLOAT_BITS and self.width != _FLOAT_BITS[kind]

    @cached_property
    def is_warp_barrier(self) -> bool:
        """Whether it is one of all threads of each warp."""
        is_sync = self.parts[:3] == ["bar", "warp", "sync"]
        is_number = is_sync and NUMBER.fullmatch(self.operands[0]) is not None
        return is_number and integer(self.operands[0]) % 2**32 == 2**32 - 1

    @cached_property
    def width(self) -> int:
        """The bits of the type that the opcode ends with."""
        last = self.parts[-1]
        if last == "pred":
            return 1
        return int(last[1:]) if last[1:].isdigit() and last[0] in "subf" else 32

    @cached_property
    def _spaces(self) -> set[str]:
        return {part.split("::")[0] for part in self.parts} & _SPACES

    @cached_property
    def is_choice(self) -> bool:
        """Whether it loads from one of two addresses: see `selected_loads`."""
        places = [o for o in self.operands if o.startswith("[")]
        return self.parts[0] == "ld" and len(places) > 1

    @cached_property
    def is_access(self) -> bool:
        """Whether it accesses shared memory."""
        first = self.parts[0]
        if first in ("ldmatrix", "stmatrix"):
            return True
        return "shared" in self._spaces and first not in ("cvta", "isspacep", "mapa")

    @cached_property
    def orders(self) -> bool:
        """Whether threads may not part ways around it."""
        if self.parts[:2] == ["bar", "warp"]:
            return False
        return self.is_access or self.parts[0] in _ORDERING

    @cached_property
    def is_generic(self) -> bool:
        """Whether it may access any state space."""
        if self.parts[0] in _HARMLESS or self._spaces or self.orders:
            return False
        has_address = any(operand.startswith("[") for operand in self.operands)
        return self.parts[0] == "call" or has_address

    @property
    def is_collective(self) -> bool:
        """Whether all threads have to execute it."""
        return self.orders and not self.is_access and self.parts[0] != "cp"

    @cached_property
    def acts(self) -> bool:
        """Whether it does more than to write registers."""
        is_jump = self.parts[0] in ("bra", "brx", "bar", *ENDS)
        return is_jump or self.orders or self.is_generic

    @cached_property
    def access_bytes(self) -> int:
        """What each thread reads or writes of shared memory; 0: not modelled."""
        parts = self.parts
        if ("async" in parts[1:] and parts[0] != "cp") or "shared::cluster" in parts:
            return 0
        if parts[0] == "ldmatrix":
            return 16 if "m8n8" in parts else 0
        if parts[0] in ("ld", "st") and parts[-1][1:].isdigit():
            counts = {"v2": 2, "v4": 4, "v8": 8}
            count = max([counts[p] for p in parts if p in counts], default=1)
            return int(parts[-1][1:]) // 8 * count
        if parts[:2] == ["cp", "async"] and parts[2] in ("ca", "cg"):
            return integer(self.operands[2])
        return 0


@lru_cache(maxsize=1 << 14)
def names_in(operand: str) -> tuple[str, ...]:
    """Registers and symbols in an operand."""
    return tuple(NAME.findall(_FLOAT.sub("", operand)))


def split(text: str) -> list[str]:
    """The operands: at commas outside of brackets."""
    if _OPENING.isdisjoint(text):
        every = [one.strip() for one in text.split(",")]
        return every if every[-1] else every[:-1]
    found, depth, last = [], 0, ""
    for letter in text:
        depth += (letter in _OPENING) - (letter in "}])")
        if letter == "," and not depth:
            found.append(last.strip())
            last = ""
        else:
            last += letter
    return [*found, last.strip()] if last.strip() else found


def items(operand: str) -> list[str]:
    """The operands in braces, or the one."""
    return split(operand[1:-1]) if operand.startswith("{") else [operand]


def integer(text: str) -> int:
    """A number as PTX writes it."""
    text = text.rstrip("U")
    digits = text.lstrip("-")
    if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
        return int(text, 8)
    try:
        return int(text, 0)
    except ValueError:
        raise CertificateError(f"expected a number, got '{text[:40]}'") from None


def is_global(ins: Instruction) -> bool:
    """Whether it may access global memory."""
    if ins.parts[0] in _HARMLESS:
        return False
    return "global" in ins.parts or ins.is_generic or ins.parts[0] == "call"


def may_write(ins: Instruction) -> bool:
    """Whether it may write memory, as all that is not known to read only."""
    is_other = is_global(ins) and ins.parts[0] not in ("ld", "ldu", "cp")
    return is_other or ins.parts[0] in ("st", "red", "atom", "stmatrix")


def place_of(operand: str) -> tuple[str, int] | None:
    """The register of an address, and what is added to it."""
    found = _PLACE.fullmatch(operand)
    if found is None:
        return None
    return found[1], integer((found[2] or found[3] or "0").replace(" ", ""))


def made_of(names: Iterable[str], code: list[Instruction]) -> set[str]:
    """Registers, and all that are made of what is in them."""
    found, more = set[str](), set(names)
    while more:
        found |= more
        every = (i.results for i in code if not found.isdisjoint(i.reads))
        more = set[str]().union(*every) - found
    return found


def places_of(ins: Instruction) -> list[tuple[str, int]]:
    """The address of an access to global memory, or both of which it may be; none
    where it is of no kind that is known.
    """
    is_copy = ins.parts[:2] == ["cp", "async"] and ins.parts[2] in ("ca", "cg")
    if ("async" in ins.parts or ins.parts[0] not in _MEMORY) and not is_copy:
        return []
    places = [place_of(o) for o in ins.operands if o.startswith("[")][is_copy:]
    known = [place for place in places if place is not None]
    return known if len(known) == len(places) else []


def most_bytes(ins: Instruction) -> int:
    """How many it accesses, where nothing says that it is fewer."""
    if ins.parts[0] == "cp":
        size = ins.operands[2]
        return integer(size) if NUMBER.fullmatch(size) else 16
    last = ins.parts[-1]
    width = int(last[1:]) if last[1:].isdigit() and last[0] in "subf" else 32
    count = next((int(p[1:]) for p in ins.parts if p in ("v2", "v4", "v8")), 1)
    return max(width // 8, 1) * count


def source_size(ins: Instruction) -> str:
    """What says how many bytes a copy reads, or that it reads none; else empty."""
    if ins.parts[0] != "cp":
        return ""
    is_hinted = any("cache_hint" in part for part in ins.parts)
    others = ins.operands[3 : len(ins.operands) - is_hinted]
    return others[0] if others else ""
