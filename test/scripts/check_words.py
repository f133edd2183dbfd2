"""Fail on words that docs/glossary.md has given up, where people read them.

usage: check_words.py [--count] FILE|FOLDER ...

Reads Markdown, and of Python files docstrings, comments and texts of messages: strings
with a blank in them. Code inside backticks does not count. `--count` prints only how
often each word is left.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Word:
    """A pattern that is not used, what is used instead, and in which folders.

    folders: parts of the path, one of which must be there; empty for everywhere
    """

    pattern: str
    instead: str
    folders: tuple[str, ...] = ()


# Folders whose programs are MLIR: a caller's arrays are not seen there, but by what
# reads the reference of a function.
_ON_MLIR = ("analysis", "transforms", "dialects", "passes", "verifier")
WORDS = (
    Word(r"plain kernels?", "SIMT fallback"),
    Word(r"whole functions?", "multi-kernel function"),
    Word(r"told at", "diagnosed at"),
    Word(r"shared sums?", "warp reduction"),
    Word(r"warp sums?", "warp reduction"),
    Word(r"stands? (?:before|behind|last|first|after)", "runs before, runs after"),
    Word(r"rests", "remaining extents"),
    Word(r"inits", "accumulator initialisation, init args"),
    Word(r"corners?", "base offset"),
    Word(r"(?:the|its|a|their|each|own|whose|which|of) places?", "offset, location"),
    Word(r"places of", "offsets of, locations of"),
    Word(r"held together|holds? together|held by (?:a|the|one|each)", "distributed to"),
    Word(r"ahead(?! of)", "lookahead, early"),
    Word(r"rounds? of the slots|whole rounds?", "slot period"),
    Word(
        r"enters a (?:new )?tile|tile (?:is|was) entered|entered", "starts, prefetched"
    ),
    Word(r"(?:is|are|stays?|leaves?) (?:left )?as (?:it is|they are)", "unchanged"),
    Word(r"left as (?:it is|they are)|left alone|leaves? alone", "left unchanged"),
    Word(r"what is not [^.]{0,60}\bis left", "unsupported ... are left unchanged"),
    # Words with other meanings that stay.
    Word(r"sums(?! (?:up|over|to)\b)", "accumulators, reductions"),
    Word(
        r"(?<!GPU )(?<!GPU's )(?<!fuse-)products?(?! of (?:\w+ )?"
        r"(?:numbers|sizes|extents|dimensions|strides|powers|terms|integers|constants))",
        "contraction, matmul",
    ),
    Word(
        r"(?<!fuse-)producers?(?!-)(?! (?:ops?|warps?|acquire|commit|threads?)\b)",
        "operand-side fusion, the op that makes",
    ),
    Word(r"(?<!scale )(?<!unroll )factors?", "operand transform"),
    Word(r"(?<!NumPy )(?<!CuPy )(?<!DLPack )arrays?", "memref, buffer", _ON_MLIR),
)
_FENCED = re.compile(r"```.*?```|^(?: {4}|\t).*?$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
# Where the glossary lists the words that this script looks for.
_LISTED = "## Words that are not used"
_EXAMPLE = re.compile(r"^(?:Before:|After:|    ).*$|`[^`\n]*`", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Print each use as `file:line: word: use ...`; 1 if there is one."""
    counts: Counter[str] = Counter()
    only_count = "--count" in arguments
    for path in files_among(Path(a) for a in arguments if a != "--count"):
        for line, found, word in uses(path):
            counts[found.lower()] += 1
            if not only_count:
                print(f"{path}:{line}: '{found}': use {word.instead}")
    if only_count:
        for found, count in counts.most_common():
            print(f"{count:5} {found}")
    print(f"{counts.total()} words left")
    return 1 if counts else 0


def files_among(paths: Iterator[Path]) -> Iterator[Path]:
    """The files to read, those of folders in order."""
    for path in paths:
        if not path.exists():
            sys.exit(f"error: no such file or folder: {path}")
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            # Not this script and its test, which name the words.
            if file.suffix in (".py", ".md") and "check_words" not in file.stem:
                yield file


def uses(path: Path) -> Iterator[tuple[int, str, Word]]:
    """Line, text and row of each word that `path` should not use."""
    source = path.read_text("utf-8")
    if path.suffix == ".py":
        texts = prose(source)
    else:
        texts = [(1, _without(_FENCED, source.partition(_LISTED)[0]))]
    folders = set() if "reference" in path.parts else set(path.parts)
    words = [w for w in WORDS if not w.folders or set(w.folders) & folders]
    for first, text in texts:
        for word in words:
            for match in re.finditer(rf"\b(?:{word.pattern})\b", text, re.IGNORECASE):
                line = first + text.count("\n", 0, match.start())
                yield line, " ".join(match[0].split()), word


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, comment and message of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], _without(_EXAMPLE, token.string)
    docstrings = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            docstrings.add(id(body[0].value))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) in docstrings:
            yield node.lineno, _without(_EXAMPLE, inspect.cleandoc(node.value))
        elif " " in node.value and not is_program(node.value):
            yield node.lineno, node.value


def is_program(text: str) -> bool:
    """Whether a string is MLIR or PTX, rather than a message."""
    return bool(re.search(r"[%@]\w|\bmemref<|!llvm|\n\s*\w+\.\w+ |;\n|^\s*#map", text))


def _without(code: re.Pattern[str], text: str) -> str:
    """The text with what is code blanked, line for line."""
    return code.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
