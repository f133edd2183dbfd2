"""The bundle of bundles: made once, read with care."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from tiny_kernels import SHAPE, items, tiny

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from bench.gpu import build, lists, pack, report
from bench.gpu.lists import Item
from bench.gpu.records import exit_status
from bench.gpu.spec import LAYOUTS, Spec


def rewrite(path: Path, to: Path, **changed: bytes) -> Path:
    """A copy of an archive with members changed; `index` is index.json."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            new.writestr(name, changed.get(name.partition(".")[0], old.read(name)))
    return to


def test_a_bundle_holds_what_was_compiled_and_why_not(bundle: Path) -> None:
    kit = pack.read(bundle)
    assert kit.target == "sm_80"
    assert [entry.role for entry in kit.of("bench")] == ["S,2", "2,1", "1,1"]
    assert len(kit.of("check")) == 2
    assert list(kit.skipped("check").values()) == [1]
    loaded = kit.load(tiny("2,2"))
    assert str(loaded.functions[0].kernels[0].schedule) == tiny("2,2").schedule


def test_what_is_unchanged_is_not_compiled_again(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = tmp_path / "again.zip"
    assert build.build(again, "sm_80", bundle.parent / "kernels", 1, items()) == 0
    assert "6 kernels, 6 compiled before" in capsys.readouterr().out
    assert pack.read(again).digests == pack.read(bundle).digests


def test_with_nothing_compiled_the_status_tells(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal is known already from the folder."""
    refused = [item for item in items() if "block=1,1,1" in item.spec.schedule]
    path = tmp_path / "none.zip"
    assert build.build(path, "sm_80", bundle.parent / "kernels", 1, refused) == 1
    assert "1 left out (tiles)" in capsys.readouterr().out


def test_a_bundle_that_is_too_large_is_not_written(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "MOST_BYTES", 1000)
    with pytest.raises(ConfigError, match="at most 1000 can travel"):
        build.build(tmp_path / "x.zip", "sm_80", bundle.parent / "kernels", 1, items())
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_kernel_is_found_when_it_is_loaded(
    bundle: Path, tmp_path: Path
) -> None:
    key = tiny("2,2").key
    kit = pack.read(rewrite(bundle, tmp_path / "kit.zip", **{key: b"damaged"}))
    with pytest.raises(ConfigError, match="is not what the index's sha256 says"):
        kit.load(tiny("2,2"))
    kit.load(tiny("2,1"))
    with pytest.raises(ConfigError, match=r"no .*\.zip in"):
        kit.load(tiny("4,4"))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (b"{", "Expecting property name"),
        (b"[]", "list indices"),
        (b"{}", "schema"),
        (b'{"schema": 99}', "schema is 99, this version reads 1"),
    ],
)
def test_a_damaged_index_is_an_error(
    bundle: Path, tmp_path: Path, index: bytes, message: str
) -> None:
    path = rewrite(bundle, tmp_path / "kit.zip", index=index)
    with pytest.raises(ConfigError, match=message):
        pack.read(path)


def test_damaged_items_are_an_error(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        index = json.loads(archive.read("index.json"))
    index["items"][0]["shapes"] = [[1, 2, 3]]
    path = rewrite(bundle, tmp_path / "kit.zip", index=json.dumps(index).encode())
    with pytest.raises(ConfigError, match="an item of the bundle's index"):
        pack.read(path)


def test_other_files_are_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        pack.read(tmp_path / "none.zip")
    path = tmp_path / "text.zip"
    path.write_text("no archive")
    with pytest.raises(ConfigError, match=r"cannot read index\.json"):
        pack.read(path)


def test_every_group_has_a_reason_and_every_item_a_shape() -> None:
    found = lists.all_items("sm_90")
    assert {item.group for item in found} <= set(lists.WHY)
    assert {item.use for item in found} == {"check", "bench", "collect", "program"}
    # The text of a program has its shapes.
    assert all(item.shapes or item.use == "program" for item in found)
    assert lists.all_items("sm_90") == found
    benched = [item for item in found if item.use == "bench"]
    roles = {lists.MODEL, *lists.ABLATION, lists.RASTER, lists.SPLIT_K, lists.WGMMA}
    assert {item.role for item in benched} == roles == set(report.OURS)
    for item in benched:
        is_of_hopper = item.spec.target == "sm_90a"
        assert is_of_hopper == (item.role == lists.WGMMA)
        if is_of_hopper:
            continue
        schedule = Schedule.parse(item.spec.schedule)
        assert (schedule.raster > 1) == (item.role == lists.RASTER)
        assert (schedule.split_k > 1) == (item.role == lists.SPLIT_K)
    assert len({(i.spec, i.role, i.group) for i in benched}) == len(benched)


def test_the_papers_operators_are_all_there() -> None:
    paper = json.loads(lists._PAPER.read_text())
    shapes = {(op, shape) for _, op, shape in lists.bench_shapes()}
    for row in paper["matmul"]["rows"]:
        assert ("matmul", (1, *row)) in shapes
    for row in paper["batch_matmul"]["rows"]:
        assert ("batch_matmul", tuple(row)) in shapes


def test_stages_are_as_many_as_fit() -> None:
    tile = "block=128,128,32 warp=64,64"
    assert lists.stages_for(tile, 4096, "sm_90")["S,2"] == "4,2"
    assert lists.stages_for(tile, 96, "sm_90")["S,2"] == "3,2"
    wide = "block=256,128,64 warp=64,64"  # 48 KB a stage
    assert lists.stages_for(wide, 4096, "sm_86")["S,1"] == "2,1"


def test_tiles_that_divide_come_first() -> None:
    for tile in lists.tiles_for((1, 1024, 64, 512), "sm_90"):
        assert int(tile.split("=")[1].split(",")[1]) <= 64
    large = {
        tile.split()[0] for tile in lists.tiles_for((1, 8192, 8192, 8192), "sm_90")
    }
    assert {"block=128,256,32", "block=256,128,32"} <= large


@pytest.mark.parametrize("op", ["matmul", "batch_matmul"])
@pytest.mark.parametrize("layout", LAYOUTS.values())
@pytest.mark.parametrize("shape", [(2, 16, 32, 48), None])
def test_the_functions_are_mlir(op: str, layout: str, shape: object) -> None:
    from alcop_mlir.compilation import inputs

    spec = Spec(op, shape, layout=layout)  # type: ignore[arg-type]
    source = inputs.read_text(spec.mlir())
    assert f"linalg.{op}" in str(source.module)
    assert Spec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_kernels_have_names_of_their_own() -> None:
    found = {item.spec for item in lists.all_items("sm_90")}
    assert len({spec.key for spec in found}) == len(found)


def test_no_rows_are_no_success() -> None:
    assert exit_status([{"kind": "run", "key": "run"}]) == 1
    assert Item(tiny("2,2"), "check", "stages", (SHAPE,)).role == ""
