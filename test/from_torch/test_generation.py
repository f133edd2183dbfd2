"""Tokens written one after the other, with caches of keys and values."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from generate import PROMPT, generate, model  # noqa: E402

from alcop_mlir.runtime.launch import Program  # noqa: E402
from alcop_mlir.torch import alcop  # noqa: E402

COUNT = 2


def test_tokens_are_those_of_eager_mode(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By two programs: one for the prompt, one for each token after.

    No two scores are so near that rounding decides: the best is further from the second
    than twenty times what f16 in eager mode differs from f64.
    """
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    programs: list[Program] = []
    call = Program.__call__

    def noted(self: Program, *given: Any, **rest: Any) -> Any:
        if not self.function.name.endswith("_prepare"):  # of weights, once
            programs.append(self)
        return call(self, *given, **rest)

    monkeypatch.setattr(Program, "__call__", noted)
    compiled = torch.compile(model, backend=alcop, fullgraph=True)
    with torch.no_grad():
        tokens = generate(model, compiled, COUNT)
        assert len(programs) == 1 + COUNT
        assert len(set(programs)) == 2
        wide = copy.deepcopy(model).double()
        narrow, exact = Noted(model), Noted(wide)
        assert tokens == generate(model, narrow, COUNT) == generate(wide, exact, COUNT)
    assert len(set(tokens[len(PROMPT) :])) == COUNT
    for one, other in zip(narrow.scores, exact.scores, strict=True):
        first, second = other.topk(2).values[0]
        assert first - second > 20 * (one - other).abs().max()


class Noted:
    """A model in eager mode, and the scores that it gave."""

    def __init__(self, model: Any) -> None:
        self.model, self.scores = model, []

    def __call__(self, *given: Any) -> Any:
        self.scores.append(self.model(*given))
        return self.scores[-1]
