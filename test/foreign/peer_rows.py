"""Loops that other compilers pipeline, by their own tests: one `.mlir` file each.

A row is `peers/PEER/NAME.mlir`: a kernel of ours with the structure of the peer's loop
(what is copied, which dependences, conditions and stages), small enough for the
emulator. Its first lines say where it is from and what becomes of it:

    // source: OWNER/REPOSITORY COMMIT FILE
    // function: the test's name; `name#2` for the second loop in it
    // does: what the peer's loop does, and the peer with it, in a line
    // expect: pipelined shared=2            copies pipelined, by level
    // expect: refused: PART OF THE REMARK   left unchanged, with that remark, or where
                                             that is "(no remark)" without one

and, where they differ from the defaults:

    // there: refused         the peer does not pipeline it either; not counted
    // lists: kept            the peer's own stages and orders, on the loop, are carried
                              out; `expect` is of the loop without them
    // lists: refused: PART   ... are an error, with that message
    // options: noalias       assume-noalias-args
    // prepare: PASSES        run before those that alcop-pipeline begins with
    // stages: 4,2            that the counts of `expect` hold for; default: 3,1
    // sizes: 0 1 5           of the kernel's `index` argument, a run each; of several
                              arguments with commas: 0,8 3,8
    // lists-sizes: 0 2 7     the same, with the lists carried out; default: all sizes
    // tables: 7              integers in memory are drawn below this; default: 7
    // grid: 2                blocks; default: 1
    // beside: shared=1       copies in other loops of the refused kernel
    // emulator: has no wmma   only planned, expanded and checked

The kernel is the only `gpu.func`, with `known_block_size`; its arguments are memrefs,
each an array of its own, then indices. Loops of peers that are no rows are listed, with
the reason, in `peers/PEER/omitted.json`: {"repository", "commit", "file", "functions",
"loops", "reason"} each; `loops` is 0 where they are not counted.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "peers"
_KNOWN = (
    "source",
    "function",
    "does",
    "expect",
    "there",
    "lists",
    "options",
    "prepare",
    "stages",
    "sizes",
    "lists-sizes",
    "tables",
    "grid",
    "beside",
    "emulator",
)
NO_REMARK = "(no remark)"
_LISTS = re.compile(r"alcop\.pipeline = #alcop\.pipeline<\{[^}]*\}>(, )?")
_REFUSED = "refused: "
_PIPELINED = "pipelined "


@dataclass(frozen=True)
class Row:
    """A loop of a peer's test, as a kernel of ours."""

    path: Path

    @property
    def name(self) -> str:
        return f"{self.peer}/{self.path.stem}"

    @property
    def peer(self) -> str:
        return self.path.parent.name

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def header(self) -> dict[str, str]:
        """The values of the first lines; ValueError where they are not as above."""
        found: dict[str, str] = {}
        for line in self.text.splitlines():
            if not line.startswith("//"):
                break
            key, separator, value = line.removeprefix("//").strip().partition(":")
            if not separator or key not in _KNOWN or key in found or not value.strip():
                raise ValueError(f"{self.name}: what is {line!r}?")
            found[key] = value.strip()
        missing = {"source", "function", "does", "expect"} - set(found)
        if missing or len(found["source"].split()) != 3:
            raise ValueError(f"{self.name}: no {', '.join(missing) or 'full source'}")
        if not found["expect"].startswith((_REFUSED, _PIPELINED)):
            raise ValueError(f"{self.name}: expects {found['expect']!r}")
        if ("lists" in found) != bool(_LISTS.search(self.text)):
            raise ValueError(f"{self.name}: expected 'lists' where a loop has a plan")
        return found

    @property
    def unplanned(self) -> str:
        """The module without the peer's own plan."""
        return _LISTS.sub("", self.text)

    @property
    def lists_error(self) -> str:
        """A part of the error that refuses the peer's plan; "" where it is kept."""
        return self.header.get("lists", "").removeprefix("kept").removeprefix(_REFUSED)

    @property
    def source(self) -> tuple[str, str, str]:
        """Repository, commit, file."""
        repository, commit, file = self.header["source"].split()
        return repository, commit, file

    @property
    def levels(self) -> dict[str, int]:
        """How many copies of the kernel are pipelined, by level."""
        expected = self.header["expect"].removeprefix(_PIPELINED)
        counts = self.header.get("beside", "") if self.remark else expected
        return {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", counts)}

    @property
    def remark(self) -> str:
        """A part of the remark that says why it is refused; "" where it is not."""
        expected = self.header["expect"]
        return expected.removeprefix(_REFUSED) if _REFUSED in expected else ""

    @property
    def counted(self) -> bool:
        """Is it a loop that the peer pipelines?"""
        return self.header.get("there", "pipelined") != "refused"

    @property
    def runs(self) -> bool:
        return "emulator" not in self.header

    @property
    def noalias(self) -> bool:
        return "noalias" in self.header.get("options", "").split()

    @property
    def prepare(self) -> str:
        return self.header.get("prepare", "")

    @property
    def stages(self) -> tuple[int, int]:
        shared, register = self.header.get("stages", "3,1").split(",")
        return int(shared), int(register)

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        """What the kernel's `index` arguments are, for each run."""
        return self._sizes("sizes", "0 1 2 7")

    @property
    def lists_sizes(self) -> list[tuple[int, ...]]:
        """The same, for runs of the peer's own plan."""
        return (
            self._sizes("lists-sizes") if "lists-sizes" in self.header else self.sizes
        )

    def _sizes(self, key: str, default: str = "") -> list[tuple[int, ...]]:
        given = self.header.get(key, default).split()
        arguments = self.text.partition("gpu.func @")[2].partition(")")[0]
        count = arguments.count(": index")
        return list(
            dict.fromkeys(tuple(map(int, one.split(",")))[:count] for one in given)
        )

    @property
    def tables(self) -> int:
        return int(self.header.get("tables", "7"))

    @property
    def grid(self) -> int:
        return int(self.header.get("grid", "1"))

    @property
    def threads(self) -> int:
        """Of a block, by the kernel's `known_block_size`."""
        (size,) = re.findall(r"known_block_size = array<i32: (\d+), 1, 1>", self.text)
        return int(size)


@dataclass(frozen=True)
class Omission:
    """Loops of a peer's test file that are no rows, and why."""

    peer: str
    repository: str
    commit: str
    file: str
    functions: str
    loops: int
    reason: str


def rows() -> list[Row]:
    """All, by peer and name."""
    return [Row(path) for path in sorted(FOLDER.glob("*/*.mlir"))]


def omissions() -> list[Omission]:
    """All, by peer, in the order of the files."""
    return [
        Omission(path.parent.name, **entry)
        for path in sorted(FOLDER.glob("*/omitted.json"))
        for entry in json.loads(path.read_text("utf-8"))
    ]
