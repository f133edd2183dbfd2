"""The search for words: what it must find, and what it must not report."""

from __future__ import annotations

from pathlib import Path

import check_words
import pytest


def found(folder: Path, name: str, text: str) -> list[str]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return [word for _, word, _ in check_words.uses(path)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"""A plain kernel per op."""', ["plain kernel"]),
        ('def f():\n    """Add up.\n\n    The sums of a warp.\n    """', ["sums"]),
        ("x = 1  # the product is tiled", ["product"]),
        ('print(f"{x}: is left alone")', ["left alone"]),
        ('"""Runs after\ntiling; stands before planning."""', ["stands before"]),
    ],
)
def test_words_of_python_files(tmp_path: Path, text: str, words: list[str]) -> None:
    assert found(tmp_path, "one.py", text) == words


@pytest.mark.parametrize(
    "text",
    [
        '"""The product of sizes; it sums up three terms."""',
        'product = "product"',
        '"""Of a body `arith.mulf` with `product` in it."""',
        'MLIR = "%product = arith.mulf %a, %b : f32"',
        '"""Arrays of the caller."""',
    ],
)
def test_what_is_right_in_python_files(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, "one.py", text) == []


def test_callers_arrays_are_not_seen_by_passes(tmp_path: Path) -> None:
    assert found(tmp_path, "transforms/one.py", '"""An array."""') == ["array"]


def test_markdown_without_its_code(tmp_path: Path) -> None:
    text = "Each product\n\n    product\n\nand `product`\n\n```\nproduct\n```\n"
    assert found(tmp_path, "one.md", text) == ["product"]


def test_the_glossary_may_list_the_words(tmp_path: Path) -> None:
    text = "## Words that are not used\n\n| plain kernel | SIMT fallback |\n"
    assert found(tmp_path, "one.md", text) == []
