"""Diagnostics of our own and of MLIR's in one form; files written whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.diagnostics import Diagnostic
from alcop_mlir.errors import ConfigError
from alcop_mlir.files import write_whole


def test_remarks_go_to_stderr_unless_collected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with make_context():
        module = ir.Module.parse("\n func.func private @f()")
        func = module.body.operations[0]
        diagnostics.remark(func, "one")
        with diagnostics.collect() as outer:
            diagnostics.warning(func, "two")
            with diagnostics.collect() as inner:
                diagnostics.remark(func, "three")
        diagnostics.remark(module, "four")
    assert capsys.readouterr().err.splitlines() == [
        "-:2:2: remark: one",
        "-: remark: four",
    ]
    assert [str(d) for d in outer] == ["-:2:2: warning: two"]
    assert [str(d) for d in inner] == ["-:2:2: remark: three"]


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ('loc("a.mlir":3:4)', "a.mlir:3:4"),
        ('loc("x"("a.mlir":3:4))', "a.mlir:3:4"),
        ('loc(callsite("a.mlir":3:4 at "b.mlir":5:6))', "a.mlir:3:4"),
        ('loc(fused["name", "a.mlir":3:4, "b.mlir":5:6])', "a.mlir:3:4"),
        ("loc(unknown)", "loc(unknown)"),
        ('loc("x")', "loc(unknown)"),
    ],
)
def test_the_place_of_a_location(location: str, place: str) -> None:
    with make_context():
        module = ir.Module.parse(f"func.func private @f() {location}")
        found = module.body.operations[0].location
        assert diagnostics.at(found, "remark", "x").place() == place


def test_diagnostics_of_mlir_with_their_notes() -> None:
    with make_context(), pytest.raises(ir.MLIRError) as caught:
        ir.Module.parse("func.func private @f()\nfunc.func private @f()")
    (said,) = map(diagnostics.from_mlir, caught.value.error_diagnostics)
    assert said.place() == "-:2:1"
    assert said.severity == "error"
    assert said.notes[-1] == Diagnostic(
        "note", "see existing symbol definition here", *("-", 1, 1)
    )
    assert str(said).splitlines()[0] == "-:2:1: error: redefinition of symbol named 'f'"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_whole(file, "one")
    write_whole(file, b"two")
    assert file.read_text() == "two"
    link = tmp_path / "link"
    link.symlink_to(file)
    write_whole(link, "three")
    assert link.is_symlink()
    assert file.read_text() == "three"
    with pytest.raises(ConfigError, match=r"cannot write '.*gone/a.txt': No such file"):
        write_whole(tmp_path / "gone" / "a.txt", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=r"cannot write '.*folder': Is a directory"):
        write_whole(tmp_path / "folder", "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "folder", "link"]


def test_a_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", "x")
    finally:
        os.umask(mask)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_what_is_no_regular_file_is_written_in_place() -> None:
    write_whole("/dev/null", "x")
    assert not Path("/dev/null").is_file()
