"""Storing bundles: whole, the same bytes each time, and checked when they are read."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bundles import CUBIN, PTX, bundle, chain, matmul

from alcop_mlir.errors import ConfigError
from alcop_mlir.manifest.kernels import CeilDiv
from alcop_mlir.polynomials import size
from alcop_mlir.runtime.bundle import MANIFEST, Bundle, is_bundle, load, save

CONSTANT = {
    "name": "w",
    "dtype": "f16",
    "shape": [8],
    "file": "w.bin",
    "offset": 0,
    "bytes": 16,
}
TENSOR_MAP = {
    "kind": "tensor_map",
    "array": "A",
    "dtype": "f16",
    "shape": [[[48, []]], [[64, []]]],
    "strides": [[[96, []]]],
    "box": [64, 64],
    "element_strides": [1, 1],
}
both_forms = pytest.mark.parametrize("name", ["out", "out.zip"])


@both_forms
def test_what_is_saved_is_loaded(tmp_path: Path, name: str) -> None:
    """All fields come back, both as a directory and as an archive."""
    sizes = matmul(
        "M", grid=(CeilDiv(size("M"), 128), 2, 1), schedule=None, registers=None
    )
    functions = [sizes, chain(), chain("M")]
    for stored in (bundle(), bundle(cubin=None), *map(bundle, functions)):
        save(stored, tmp_path / name)
        assert load(tmp_path / name) == stored


@both_forms
def test_the_same_bundle_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    """They do not depend on time, folder or the order of kernels."""
    first = bundle(
        matmul(module="m1"), replace(matmul(name="k2", module="m2"), name="other")
    )
    second = replace(first, code=dict(reversed(list(first.code.items()))))
    contents = []
    for folder, stored in (("a", first), ("b", second)):
        (tmp_path / folder).mkdir()
        save(stored, tmp_path / folder / name)
        contents.append(_bytes_of(tmp_path / folder / name))
    assert contents[0] == contents[1]


def test_a_directory_holds_ptx_and_cubin_as_files(tmp_path: Path) -> None:
    """Other programs can take them from there; the names hold their hashes."""
    save(bundle(), tmp_path / "out")
    (ptx,) = (tmp_path / "out").glob("matmul-*.ptx")
    (cubin,) = (tmp_path / "out").glob("matmul-*.cubin")
    assert ptx.read_text() == PTX
    assert cubin.read_bytes() == CUBIN
    assert hashlib.sha256(CUBIN).hexdigest().startswith(cubin.stem.split("-")[1])


@both_forms
def test_a_bundle_replaces_a_bundle(tmp_path: Path, name: str) -> None:
    """Nothing of the old one stays, and nothing else is left beside it."""
    save(bundle(), tmp_path / name)
    save(bundle(cubin=None), tmp_path / name)
    assert load(tmp_path / name) == bundle(cubin=None)
    assert [item.name for item in tmp_path.iterdir()] == [name]
    assert not any("cubin" in item for item in _bytes_of(tmp_path / name))


def test_what_is_no_bundle_is_not_replaced(tmp_path: Path) -> None:
    """Neither a directory with other files, nor a file."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("...")
    with pytest.raises(ConfigError, match=r"mine' exists and is not a bundle"):
        save(bundle(), folder)
    with pytest.raises(ConfigError, match=r"thesis\.tex' exists and is not a bundle"):
        save(bundle(), folder / "thesis.tex")
    (tmp_path / "folder.zip").mkdir()
    with pytest.raises(ConfigError, match=r"folder\.zip' is a directory"):
        save(bundle(), tmp_path / "folder.zip")
    assert (folder / "thesis.tex").read_text() == "..."
    assert sorted(item.name for item in tmp_path.iterdir()) == ["folder.zip", "mine"]


@both_forms
def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk in the middle: the old bundle is whole, no half-written file."""
    save(bundle(), tmp_path / name)

    def full_disk(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full_disk)
    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(
        ConfigError, match=r"cannot write '.*': No space left on device"
    ):
        save(bundle(cubin=None), tmp_path / name)
    assert load(tmp_path / name) == bundle()
    assert [item.name for item in tmp_path.iterdir()] == [name]


def test_a_missing_parent_is_an_error(tmp_path: Path) -> None:
    """It is not made: a typing error in a path would go unnoticed."""
    with pytest.raises(ConfigError, match=r"cannot write .*: no directory '.*no'"):
        save(bundle(), tmp_path / "no" / "out")


@both_forms
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("target"), "target: missing"),
        (lambda m: m.update(target="sm_10"), "unknown target 'sm_10'"),
        (
            lambda m: m.update(schema=1),
            "schema is 1, this version reads 2 and 3: compile it again",
        ),
        (
            lambda m: m.update(schema="1"),
            'manifest.schema: expected an integer, got "1"',
        ),
        (
            lambda m: m.update(schema=True),
            "manifest.schema: expected an integer, got true",
        ),
        (lambda m: m.update(functions={}), "functions: expected a list, got {}"),
        (
            lambda m: m.update(functions=[3]),
            r"functions\[0\]: expected an object, got 3",
        ),
        (lambda m: _function(m).pop("launches"), r"functions\[0\].launches: missing"),
        (
            lambda m: _function(m).update(constants=[{}]),
            r"functions\[0\].constants\[0\].name: missing",
        ),
        (
            lambda m: _function(m).update(constants=[CONSTANT]),
            'constant "w": unknown file "w.bin"',
        ),
        (
            lambda m: _function(m).update(prepare={"a": 1}),
            r'functions\[0\].prepare: unknown "a", expected one of function, weights',
        ),
        (
            lambda m: _function(m).update(
                prepare={"function": "pack", "weights": ["B"], "arrays": []}
            ),
            'function "matmul": unknown function "pack" prepares its weights',
        ),
        (
            lambda m: _function(m).update(
                prepare={"function": "matmul", "weights": [], "arrays": []}
            ),
            'function "matmul": unknown function "matmul" prepares its weights',
        ),
        (
            lambda m: _function(m).update(launches=[[]]),
            r"functions\[0\].launches\[0\]: expected an object, got \[\]",
        ),
        (
            lambda m: _function(m).update(launches=[{"variants": []}]),
            r"functions\[0\].launches\[0\]: launch: the last variant must have no",
        ),
        (
            lambda m: _variant(m).update(guard=[7]),
            r"variants\[0\].guard\[0\]: expected an object, got 7",
        ),
        (
            lambda m: _variant(m).update(guard=[_aligned("A")]),
            "the last variant must have no guard",
        ),
        (
            lambda m: _variant(m).update(guard=[{"aligned": ["Z", 16]}]),
            r"variants\[0\].guard\[0\].holds: missing",
        ),
        (
            lambda m: _variant(m).update(guard=[{**_aligned("A"), "holds": "odd"}]),
            r"guard\[0\].holds: expected one of at_most, .*, aligned, got .odd",
        ),
        (
            lambda m: _variants(m).insert(0, {**_variant(m), "guard": [_aligned("Z")]}),
            "function .matmul.: unknown array .Z",
        ),
        (
            lambda m: _kernel(m).update(module="other"),
            "kernel 'matmul': unknown module .other",
        ),
        (
            lambda m: _kernel(m).update(arguments=[{"tensor_map": {}}]),
            r"arguments\[0\].kind: missing",
        ),
        (
            lambda m: _kernel(m).update(arguments=[{"kind": "tensor_map"}]),
            r"arguments\[0\].array: missing",
        ),
        (
            lambda m: _kernel(m).update(arguments=[{**TENSOR_MAP, "array": "Z"}]),
            "kernel 'matmul': unknown array .Z",
        ),
        (
            lambda m: _parameter(m).update(dtype="f8"),
            r"parameters\[0\].dtype: expected one of .*, got .f8",
        ),
        (
            lambda m: _parameter(m).update(role="big"),
            r"parameters\[0\].role: expected one of in, out, inout, got .big",
        ),
        (
            lambda m: _parameter(m).update(shape=[-1]),
            r"parameters\[0\].shape\[0\]: expected an integer of 0 or more.*, got -1",
        ),
        (
            lambda m: _parameter(m).update(shape=[1.5]),
            r"parameters\[0\].shape\[0\]: expected an integer of 0 .*, got 1\.5",
        ),
        (
            lambda m: _parameter(m).update(strides=[1]),
            "parameter .A. has 1 strides, expected 2",
        ),
        (
            lambda m: _parameter(m).update(strides=[]),
            "parameter .A. has 0 strides, expected 2",
        ),
        (
            lambda m: _parameter(m).update(row_alignment=-2),
            "row_alignment: expected an integer of 1 or more, got -2",
        ),
        (
            lambda m: _parameter(m).update(alignment=0),
            "alignment: expected an integer of 1 or more, got 0",
        ),
        (
            lambda m: _kernel(m).update(arguments=[-1]),
            r"arguments\[0\]: expected an object, got -1",
        ),
        (
            lambda m: _kernel(m).update(arguments=[{"kind": "size", "size": -1}]),
            r"arguments\[0\].size: expected an integer of 0 or more, got -1",
        ),
        (
            lambda m: _kernel(m).update(arguments=[{"kind": "size", "size": "Q"}]),
            "function .matmul.: unknown size .Q",
        ),
        (
            lambda m: _parameter(m).update(name="B"),
            "function .matmul. names an array twice",
        ),
        (
            lambda m: _kernel(m).update(name="../../etc/x"),
            r"kernels\[0\].name: expected text like .*, got .\.\./\.\./etc/x",
        ),
        (
            lambda m: _kernel(m).update(arguments=[{"pointer": "Z"}]),
            r"arguments\[0\].kind: missing",
        ),
        (
            lambda m: _kernel(m).update(arguments=[{"kind": "pointer", "array": "Z"}]),
            "kernel 'matmul': unknown array .Z",
        ),
        (
            lambda m: _kernel(m).update(arguments=[[]]),
            r"arguments\[0\]: expected an object, got \[\]",
        ),
        (
            lambda m: _kernel(m).update(grid=[1, 1]),
            r"kernels\[0\].grid: expected a list of 3, .*got \[1, 1\]",
        ),
        (
            lambda m: _kernel(m).update(grid=[-1, 1, 1]),
            r"grid\[0\]: expected an integer of 0 or more, got -1",
        ),
        (
            lambda m: _kernel(m).update(grid=["1+1", 1, 1]),
            r"grid\[0\]: expected an integer of 0 or more or an object or a list, "
            r"got .1\+1",
        ),
        (
            lambda m: _kernel(m).update(grid=[_ceildiv([[1, ["Q"]]], 2), 1, 1]),
            "function .matmul.: unknown size .Q",
        ),
        (
            lambda m: _kernel(m).update(grid=[_ceildiv([], 0), 1, 1]),
            r"grid\[0\].divisor: expected an integer of 1 or more, got 0",
        ),
        (
            lambda m: _kernel(m).update(registers=True),
            "registers: expected an integer of 0 or more or null, got true",
        ),
        (
            lambda m: _kernel(m).update(shared_bytes=float("nan")),
            "no JSON: NaN is no number of it",
        ),
        (
            lambda m: _kernel(m).update(shared_bytes=10**400),
            "shared_bytes: expected an integer of 0 or more, got an integer of 1329",
        ),
        (lambda m: m.update(license="MIT"), 'unknown "license", expected one of'),
        (
            lambda m: _kernel(m).update(block=[32, 1]),
            r"block: expected a list of 3, .*got \[32, 1\]",
        ),
        (
            lambda m: _kernel(m).update(shared_bytes=-1),
            "shared_bytes: expected an integer of 0 or more, got -1",
        ),
        (
            lambda m: _kernel(m).update(schedule=7),
            "schedule: expected an object or null, got 7",
        ),
        (
            lambda m: _kernel(m).update(schedule={"tile": [1]}),
            'schedule: unknown "tile"',
        ),
        (
            lambda m: _kernel(m).update(pipelines=[{"buffer": "A", "level": "L2"}]),
            r"pipelines\[0\].level: expected one of shared, register, got .L2",
        ),
        (
            lambda m: _step(m).update(op="sort"),
            r"reference\[0\].op: expected one of contraction, .*sort",
        ),
        (
            lambda m: _step(m).update(op=["map"]),
            r"reference\[0\].op: expected one of contraction, .*map",
        ),
        (
            lambda m: _step(m).update(maps="import os"),
            r"reference\[0\].maps: expected text like .*import os",
        ),
        (lambda m: _step(m).update(lhs="Z"), "unknown array .Z"),
        (
            lambda m: _module(m)["ptx"].update(sha256=""),
            r"modules\[0\].ptx.sha256: expected text like .*, got \"\"",
        ),
        (
            lambda m: _module(m)["ptx"].update(sha256="0" * 64),
            "matmul.ptx is not what the manifest's sha256 says",
        ),
        (
            lambda m: _module(m)["ptx"].pop("sha256"),
            r"modules\[0\].ptx.sha256: missing",
        ),
        (lambda m: m.update(modules=m["modules"] * 2), "names a module twice"),
        (
            lambda m: m.update(modules={}),
            "modules: expected a list, got {}",
        ),
    ],
)
def test_a_wrong_manifest_is_refused(
    tmp_path: Path, name: str, change: Callable[[Any], Any], message: str
) -> None:
    """One line that says what is wrong, and where."""
    path = tmp_path / name
    contents = _saved(bundle(), path)
    manifest = json.loads(contents[MANIFEST])
    change(manifest)
    _write(path, {**contents, MANIFEST: json.dumps(manifest).encode()})
    wanted = rf"damaged bundle '.*{name}': .*{message}"
    with pytest.raises(ConfigError, match=wanted) as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "A"}, "names an array twice"),
        ({"name": "y"}, "names an array twice"),
        ({"name": 3}, r"intermediates\[0\].name: expected text, got 3"),
        (
            {"dtype": "f32; rm"},
            r"intermediates\[0\].dtype: expected text like .*f32; rm",
        ),
        ({"dtype": "i99999"}, r"intermediates\[0\].dtype: expected text like .*i99999"),
        ({"shape": [-1]}, r"intermediates\[0\].shape\[0\]: expected .*, got -1"),
        ({"shape": ["Q"]}, "function .chain.: unknown size .Q"),
        ({"shape": [[1]]}, r"intermediates\[0\].shape\[0\]\[0\]: expected .*, got 1"),
        ({"shape": [[[1, ["Q"]]]]}, "function .chain.: unknown size .Q"),
    ],
)
def test_wrong_intermediate_buffers_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """Their memory is allocated before anything is launched."""
    path = tmp_path / "out"
    contents = _saved(bundle(chain()), path)
    manifest = json.loads(contents[MANIFEST])
    _function(manifest)["intermediates"][0].update(change)
    _write(path, {**contents, MANIFEST: json.dumps(manifest).encode()})
    with pytest.raises(ConfigError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("dividend", "message"),
    [
        ([[1, ["Q"]]], "function .chain.: unknown size .Q"),
        (["M"], r"dividend\[0\]: expected a list of 2, got .M"),
        ([[1, "M"]], r"dividend\[0\]\[1\]: expected a list, got .M"),
        ([None], r"dividend\[0\]: expected a list of 2, got null"),
        ({"M": 1}, "dividend: expected a list, got an object"),
        (7, "dividend: expected a list, got 7"),
        ("M", "dividend: expected a list, got .M"),
    ],
)
def test_grids_are_polynomials_of_known_sizes(
    tmp_path: Path, dividend: Any, message: str
) -> None:
    """Nothing else is computed."""
    path = tmp_path / "out"
    contents = _saved(bundle(chain("M")), path)
    manifest = json.loads(contents[MANIFEST])
    _kernel(manifest)["grid"][0] = _ceildiv(dividend, 256)
    _write(path, {**contents, MANIFEST: json.dumps(manifest).encode()})
    with pytest.raises(ConfigError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (3, r"checks\[0\]: expected an object, got 3"),
        ([], r"checks\[0\]: expected an object, got \[\]"),
        ({}, r"checks\[0\].least: missing"),
        ({"least": [[1, ["M"]]]}, r"checks\[0\].most: missing"),
        ({"least": [[1, ["Q"]]], "most": []}, "function .chain.: unknown size .Q"),
        ({"least": [["M", 1]], "most": []}, r"least\[0\]\[0\]: expected an integer"),
        ({"least": [[1, ["M"], 2]], "most": []}, r"least\[0\]: expected a list of 2"),
        ({"least": [[1, [[]]]], "most": []}, r"least\[0\]\[1\]\[0\]: expected text"),
    ],
)
def test_checks_are_of_known_sizes(tmp_path: Path, check: Any, message: str) -> None:
    """They are polynomials as lists of terms, never text to evaluate."""
    path = tmp_path / "out"
    contents = _saved(bundle(chain("M")), path)
    manifest = json.loads(contents[MANIFEST])
    _function(manifest)["checks"] = [check]
    _write(path, {**contents, MANIFEST: json.dumps(manifest).encode()})
    with pytest.raises(ConfigError, match=message):
        load(path)


@both_forms
@pytest.mark.parametrize(
    ("changed", "content", "message"),
    [
        (MANIFEST, None, "no manifest.json"),
        (MANIFEST, b"", "manifest.json: no JSON: Expecting value"),
        (MANIFEST, b"{" * 4000, "manifest.json: no JSON: Expecting"),
        (MANIFEST, b"[" * 100_000, "manifest.json: no JSON: nested too deep"),
        (MANIFEST, b"\xff\xfe\xfd", "manifest.json: no UTF-8 text"),
        (MANIFEST, b"[]", r"manifest: expected an object, got \[\]"),
        ("matmul.ptx", None, "no matmul.ptx"),
        ("matmul.ptx", b"changed", "matmul.ptx is not what the manifest's sha256 says"),
        ("matmul.cubin", None, "no matmul.cubin"),
        ("matmul.cubin", b"changed", "matmul.cubin is not what"),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, name: str, changed: str, content: bytes | None, message: str
) -> None:
    """A file that is missing, cut off, or not what was written."""
    path = tmp_path / name
    contents = _saved(bundle(), path)
    del contents[changed]
    _write(path, contents if content is None else {**contents, changed: content})
    with pytest.raises(
        ConfigError, match=f"damaged bundle '.*': .*{message}"
    ) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_ptx_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """The message names the file, even where its hash is right."""
    path = tmp_path / "out"
    contents = _saved(bundle(), path)
    manifest = json.loads(contents[MANIFEST])
    _module(manifest)["ptx"]["sha256"] = hashlib.sha256(b"\xff").hexdigest()
    changed = {MANIFEST: json.dumps(manifest).encode(), "matmul.ptx": b"\xff"}
    _write(path, {**contents, **changed})
    with pytest.raises(ConfigError, match=r"': matmul\.ptx: no UTF-8 text"):
        load(path)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 and then nothing", b"no archive"]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    """Also an archive that is cut off."""
    path = tmp_path / "out.zip"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"damaged bundle '.*out\.zip': .*zip"):
        load(path)
    save(bundle(), path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ConfigError, match="damaged bundle"):
        load(path)


def test_a_missing_bundle_is_not_a_damaged_one(tmp_path: Path) -> None:
    """The message says that nothing is there."""
    with pytest.raises(ConfigError, match=r"no such file or directory: '.*gone\.zip'"):
        load(tmp_path / "gone.zip")


def test_directories_and_archives_are_meant_as_bundles(tmp_path: Path) -> None:
    """How alcop-run tells them from MLIR files."""
    assert is_bundle(tmp_path)
    assert is_bundle("made.zip")
    assert not is_bundle("matmul.mlir")


def test_functions_are_found_by_name() -> None:
    """Without a name the only one; else the message lists them."""
    one, other = matmul(), replace(matmul(), name="other")
    assert bundle().function() == bundle().function("matmul") == one
    assert bundle(one, other).function("other") == other
    with pytest.raises(ConfigError, match=r"which function\? .* matmul, other"):
        bundle(one, other).function()
    with pytest.raises(ConfigError, match="no function 'third', it has matmul, other"):
        bundle(one, other).function("third")


def _function(manifest: Any) -> Any:
    return manifest["functions"][0]


def _module(manifest: Any) -> Any:
    return manifest["modules"][0]


def _variants(manifest: Any) -> Any:
    return _function(manifest)["launches"][0]["variants"]


def _variant(manifest: Any) -> Any:
    return _variants(manifest)[0]


def _parameter(manifest: Any) -> Any:
    return _function(manifest)["parameters"][0]


def _kernel(manifest: Any) -> Any:
    return _variant(manifest)["kernels"][0]


def _step(manifest: Any) -> Any:
    return _function(manifest)["reference"][0]


def _aligned(array: str) -> dict[str, Any]:
    return {"holds": "aligned", "array": array, "bytes": 16}


def _ceildiv(dividend: Any, divisor: int) -> dict[str, Any]:
    return {"dividend": dividend, "divisor": divisor}


def _bytes_of(path: Path) -> dict[str, bytes]:
    if path.is_dir():
        return {item.name: item.read_bytes() for item in path.iterdir()}
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _saved(stored: Bundle, path: Path) -> dict[str, bytes]:
    """Save it; its files, which are called the same in both forms."""
    archive = path.with_name("plain.zip")
    save(stored, archive)
    contents = _bytes_of(archive)
    archive.unlink()
    save(stored, path)
    _write(path, contents)
    return contents


def _write(path: Path, contents: dict[str, bytes]) -> None:
    """Write a bundle without the checks of `save`."""
    if path.is_dir():
        for item in path.iterdir():
            item.unlink()
        for name, data in contents.items():
            (path / name).write_bytes(data)
        return
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
