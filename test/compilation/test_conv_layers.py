"""bench/bench_conv_layers.py: its layers, some of which are compiled and run."""

from __future__ import annotations

import math
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import bench_conv_layers as bench
from conv_layers import Layer, layers

# Distinct layers: the paper's two tables have 20 and 4 rows.
COUNTS = {"alcop2d": 20, "alcop3d": 4, "resnet18": 11, "resnet50": 23, "vgg16": 9}
RUN = (
    "resnet18 28x28x128 -> 256, 1x1 s2",
    "resnet50 7x7x512 -> 512, 3x3 p1",
    "odd 28x28x24 -> 64, 3x3 p1",
    "odd 56x56x64 -> 128, 3x3 s2 to1",
    "odd 28x28x64 -> 64, 3x3 p1 g2",
)


def test_all_layers_are_there() -> None:
    every = list(layers([], [1]))
    counts = Counter(layer.network for layer in every)
    assert counts == {**COUNTS, "odd": counts["odd"]}
    assert len({(one.network, str(one)) for one in every}) == len(every)
    for one in every:
        assert min(one.places) >= 1, one
        assert min(one.cut().places) >= 1, one
        assert one.channels % one.groups == one.filters % one.groups == 0, one


def test_cut_down_a_layer_takes_little_time() -> None:
    """Multiplications, of which the emulator runs 3e7 a second on tensor cores."""
    for whole in layers([], [64]):
        one = whole.cut()
        count = one.batch * math.prod((*one.places, *one.window))
        assert count * one.channels * one.filters // one.groups <= 3e7, whole


@pytest.mark.parametrize("name", RUN)
def test_on_tensor_cores(name: str) -> None:
    whole = bench.compiled(_layer(name), "sm_80")
    assert whole.contraction is not None, whole.why
    assert whole.why == ""
    assert bench.excess(whole, "sm_80") <= 1


def test_depthwise_says_why_not() -> None:
    depthwise = bench.compiled(_layer("odd 28x28x64 -> 64, 3x3 p1 g64"), "sm_80")
    assert depthwise.contraction is None
    assert "depthwise" in depthwise.why or "channels" in depthwise.why


def test_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one layer; with a status, and no record where tests run."""
    one = _layer(RUN[0])
    monkeypatch.setattr(bench, "layers", lambda *_: [one])
    monkeypatch.setattr(bench, "store", lambda *_: Path("conv_layers.jsonl"))
    monkeypatch.setattr(bench, "excess", lambda *_: 1.5)
    assert bench.main(["--run"]) == 1
    text = capsys.readouterr().out
    assert str(one) in text
    assert "tensor cores: 1" in text
    assert "1 layers are wrong, or are not compiled" in text


def _layer(name: str) -> Layer:
    found = layers([name.split()[0]], [1])
    return next(one for one in found if f"{one.network} {one}" == name)
