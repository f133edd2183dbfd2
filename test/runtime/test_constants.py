"""Constant arrays of a bundle: stored once, checked when read, given to kernels."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import PTX, arrays, bundle, matmul, pointers
from fake_cupy import FakeCupy, GpuArray
from fake_emulator import FakeEmulator

from alcop_mlir.errors import ConfigError
from alcop_mlir.manifest.arrays import Constant
from alcop_mlir.manifest.functions import Function
from alcop_mlir.reference.steps import Einsum
from alcop_mlir.runtime.bundle import MANIFEST, Bundle, Code, load, save
from alcop_mlir.runtime.constants import reference_constants
from alcop_mlir.runtime.launch import Program

both_forms = pytest.mark.parametrize("name", ["out", "out.zip"])
WEIGHTS = np.arange(48 * 32, dtype=np.float16).reshape(48, 32) / 64
DATA = WEIGHTS.tobytes()


def with_weights(*names: str, **changes: Any) -> Function:
    """`C = A @ w`, for the first of the constants of these names."""
    function = matmul(arguments=pointers("A", names[0], "C"))
    constant = Constant(names[0], "f16", (48, 32), "w.bin", 0, len(DATA))
    return replace(
        function,
        parameters=(function.parameters[0], function.parameters[2]),
        reference=(Einsum("A", names[0], "C", "mk,kn->mn", None),),
        constants=tuple(replace(constant, name=n, **changes) for n in names),
    )


def stored(data: bytes = DATA, **changes: Any) -> Bundle:
    return replace(bundle(with_weights("w", **changes)), data={"w.bin": data})


def files_of(path: Path) -> dict[str, bytes]:
    if path.is_dir():
        return {one.name: one.read_bytes() for one in path.iterdir()}
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, contents: dict[str, bytes]) -> None:
    if path.is_dir():
        for name, data in contents.items():
            (path / name).write_bytes(data)
        return
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)


@both_forms
def test_equal_constants_are_one_file(tmp_path: Path, name: str) -> None:
    """Named after its contents, whatever they were called."""
    function = with_weights("w", "v")
    first, second = function.constants
    function = replace(function, constants=(first, replace(second, file="v.bin")))
    data = {"w.bin": DATA, "v.bin": DATA}
    save(replace(bundle(function), data=data), tmp_path / name)
    named = f"constant-{hashlib.sha256(DATA).hexdigest()[:16]}.bin"
    binary = {n: d for n, d in files_of(tmp_path / name).items() if n.endswith(".bin")}
    assert binary == {named: DATA}
    found = load(tmp_path / name)
    assert found.data == binary
    assert [one.file for one in found.function().constants] == [named, named]
    assert found.contents(found.function().constants[1]) == DATA
    again = tmp_path / f"again-{name}"
    save(found, again)
    assert files_of(again) == files_of(tmp_path / name)


def test_an_archive_holds_code_deflated_and_constants_stored(tmp_path: Path) -> None:
    """PTX is mostly repetition; numbers hardly get smaller, and there may be many."""
    ptx = PTX * 99
    made = replace(stored(), code={"matmul": Code(ptx)})
    save(made, tmp_path / "out.zip")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        found = {Path(one.filename).suffix: one for one in archive.infolist()}
    assert found[".bin"].compress_type == zipfile.ZIP_STORED
    for suffix in (".ptx", ".json"):
        assert found[suffix].compress_type == zipfile.ZIP_DEFLATED
    assert found[".ptx"].compress_size < len(ptx) / 4
    assert load(tmp_path / "out.zip").code == made.code


@both_forms
@pytest.mark.parametrize("change", [b"\x01" + DATA[1:], DATA[:-1], DATA + b"\0", b""])
def test_a_damaged_constant_is_refused(
    tmp_path: Path, name: str, change: bytes
) -> None:
    save(stored(), tmp_path / name)
    contents = files_of(tmp_path / name)
    (file,) = (one for one in contents if one.endswith(".bin"))
    rewrite(tmp_path / name, contents | {file: change})
    with pytest.raises(ConfigError, match=f"{file} is not what the manifest's sha256"):
        load(tmp_path / name)


@both_forms
def test_a_missing_constant_is_refused(tmp_path: Path, name: str) -> None:
    save(stored(), tmp_path / name)
    contents = files_of(tmp_path / name)
    (file,) = (one for one in contents if one.endswith(".bin"))
    del contents[file]
    if name == "out":
        (tmp_path / name / file).unlink()
    rewrite(tmp_path / name, contents)
    with pytest.raises(ConfigError, match=f"no {file}"):
        load(tmp_path / name)


@both_forms
@pytest.mark.parametrize(
    ("data", "changes", "message"),
    [
        (DATA + b"\0", {}, "has 3073 bytes, its constants 3072"),
        (DATA[:-1], {}, "has 3071 bytes, its constants 3072"),
        (DATA, {"offset": 1}, "has 3072 bytes, its constants 3073"),
        (DATA, {"bytes": 3070}, '"w" has 3070 bytes, expected 3072 of 48x32xf16'),
        (DATA, {"shape": (48, 33)}, "has 3072 bytes, expected 3168 of 48x33xf16"),
        (DATA, {"shape": (2**60,) * 9}, "has 3072 bytes, expected more than 2"),
        (DATA, {"dtype": "f32"}, "has 3072 bytes, expected 6144 of 48x32xf32"),
        (DATA, {"file": "v.bin"}, 'constant "w": unknown file "v.bin"'),
    ],
)
def test_what_a_constant_says_has_to_fit_its_file(
    tmp_path: Path, name: str, data: bytes, changes: dict[str, Any], message: str
) -> None:
    """When it is stored, and when it is read: here a manifest changed by hand."""
    with pytest.raises(ConfigError, match=f"cannot be stored: .*{message}"):
        save(stored(data, **changes), tmp_path / name)
    save(stored(), tmp_path / name)
    contents = files_of(tmp_path / name)
    (file,) = (one for one in contents if one.endswith(".bin"))
    manifest = json.loads(contents[MANIFEST])
    manifest["functions"][0]["constants"][0] |= changes
    manifest["data"][0]["sha256"] = hashlib.sha256(data).hexdigest()
    contents |= {MANIFEST: json.dumps(manifest).encode(), file: data}
    rewrite(tmp_path / name, contents)
    with pytest.raises(ConfigError, match=message):
        load(tmp_path / name)


def test_a_name_is_of_one_array() -> None:
    """Of no two constants, of no parameter, and of no step of the reference."""
    for function, message in (
        (with_weights("w", "w"), "names an array twice"),
        (with_weights("A"), "names an array twice"),
        (
            replace(
                with_weights("w"), reference=(Einsum("A", "w", "w", "mk,kn->mn", None),)
            ),
            'reference: "w" is a constant',
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            save(replace(bundle(function), data={"w.bin": DATA}), "unwritten")


@both_forms
def test_constants_count_to_the_limit_of_a_bundle(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one is written, and where it is read."""
    save(stored(), tmp_path / name)
    monkeypatch.setenv("ALCOP_MAX_BUNDLE", "3000")
    with pytest.raises(ConfigError, match="expected at most 3000; ALCOP_MAX_BUNDLE=N"):
        save(stored(), tmp_path / f"other-{name}")
    with pytest.raises(ConfigError, match="expected at most 3000; ALCOP_MAX_BUNDLE=N"):
        load(tmp_path / name)


def test_a_bundle_without_the_contents_is_refused() -> None:
    """As one that is made by hand may be."""
    with pytest.raises(ConfigError, match=r"constant 'w': the bundle has no w\.bin"):
        Program(replace(stored(), data={}))


def test_the_emulator_gets_them_read_only(emulator: FakeEmulator) -> None:
    """Aligned, and the same array in each call."""
    a, _, c = arrays()
    program = Program(stored(), device="emulator")
    program(a, c)
    program(a, c)
    given = [call[4][1] for call in emulator.calls]
    assert given[0] is given[1]
    assert given[0].tobytes() == DATA
    assert not given[0].flags.writeable
    assert given[0].ctypes.data % 16 == 0


def test_a_gpu_gets_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One copy for each GPU, complete before the first kernel runs."""
    fake, copies = FakeCupy(), []
    monkeypatch.setitem(sys.modules, "cupy", fake)

    def asarray(array: Any) -> GpuArray:
        if isinstance(array, GpuArray):
            return array
        copies.append(GpuArray(array.copy()))
        return copies[-1]

    monkeypatch.setattr(fake, "asarray", asarray)
    a, _, c = arrays()
    program = Program(stored())
    for number in (0, 0, 1):
        program(GpuArray(a, number=number), GpuArray(c, number=number))
    addresses = [call.arguments[1] for call in fake.launches]
    assert [one.get().tobytes() for one in copies] == [DATA, DATA]
    first, second = (one.data.ptr for one in copies)
    assert addresses == [first, first, second]


def test_a_reference_reads_them_as_arrays() -> None:
    program = stored()
    found = reference_constants(program, program.function())
    assert list(found) == ["w"]
    assert np.array_equal(found["w"], WEIGHTS)
