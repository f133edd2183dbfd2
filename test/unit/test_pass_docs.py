"""docs/passes.md is the documentation in the pass classes."""

from __future__ import annotations

from pathlib import Path

from alcop_mlir.tools.pass_docs import document

PAGE = Path(__file__).resolve().parents[2] / "docs" / "passes.md"


def test_the_page_is_up_to_date() -> None:
    expected = document()
    assert PAGE.read_text("utf-8") == expected, (
        "run: python -m alcop_mlir.tools.pass_docs > docs/passes.md"
    )


def test_every_pass_and_pipeline_has_a_section() -> None:
    page = document()
    for name in ("alcop-plan-pipelines", "alcop-lower-to-nvvm", "alcop-compile"):
        assert f"\n## {name}\n" in page
    assert "| `target` | text | `sm_80` |" in page
