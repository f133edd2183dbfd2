"""alcop-run on bare PTX with a launch description."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alcop_mlir.tools import run as tool

FOLDER = Path(__file__).resolve().parents[2] / "examples/ptx"
PTX, LAUNCH = FOLDER / "window_sum.ptx", FOLDER / "window_sum.json"
DESCRIPTION: dict[str, Any] = json.loads(LAUNCH.read_text())
F32 = {"dtype": "f32", "shape": [4, 8, 128]}
TYPES = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry types(.param .u64 p0, .param .b16 p1, .param .f32 p2, .param .u8 p3)
{
  .reg .b64 %a; .reg .b16 %h; .reg .f32 %f; .reg .b16 %b;
  ld.param.u64 %a, [p0];
  ld.param.b16 %h, [p1];
  ld.param.f32 %f, [p2];
  ld.param.u8 %b, [p3];
  st.global.b16 [%a], %h;
  st.global.b16 [%a+2], %b;
  st.global.f32 [%a+4], %f;
  ret;
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(description: Any, *options: str, ptx: str | None = None) -> int:
    """alcop-run in the current folder; `description` is text, or made to JSON."""
    text = description if isinstance(description, str) else json.dumps(description)
    Path("launch.json").write_text(text)
    file = str(PTX)
    if ptx is not None:
        file = "kernel.ptx"
        Path(file).write_text(ptx)
    return tool.main([file, "--launch", "launch.json", *options])


def test_the_example(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the comment in its source says."""
    options = ["--profile", "--trace", "trace.json", "--save-outputs", "out"]
    assert tool.main([str(PTX), "--launch", str(LAUNCH), *options]) == 0
    text = capsys.readouterr().out
    assert re.search(r"(?m)^  hazards    none$", text)
    assert re.search(r"(?m)^  launch     4 blocks of 128 threads$", text)
    assert re.search(r"(?m)^  time       \S+ m?s, \d+ instructions$", text)
    assert "profile of window_sum" in text
    x, y = (np.load(folder / f"out/argument{n}.npy") for n in (0, 1))
    np.testing.assert_array_equal(y, x + np.roll(x, -1, axis=2))
    assert np.abs(x).max() <= 1
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]


@pytest.mark.usefixtures("folder")
def test_a_race_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 1; what was written is right, what was saved is there."""
    text = PTX.read_text()
    second = text.rindex("bar.sync")
    broken = text[:second] + text[second:].replace("bar.sync \t0;", "", 1)
    assert run(DESCRIPTION, "--save-outputs", "out", ptx=broken) == 1
    shown = capsys.readouterr()
    assert re.search(r"(?m)^  hazards    write-after-read at PTX line \d+: ", shown.out)
    assert not shown.err
    x, y = (np.load(f"out/argument{n}.npy") for n in (0, 1))
    np.testing.assert_array_equal(y, x + np.roll(x, -1, axis=2))
    assert run(DESCRIPTION, "--no-hazards", ptx=broken) == 0
    assert "not looked for" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_values_have_the_type_that_is_said() -> None:
    arguments = [
        {"array": {"dtype": "u16", "shape": [4], "init": "zero"}},
        {"value": 1.5, "dtype": "bf16"},
        {"value": 2, "dtype": "f32"},
        {"value": 200, "dtype": "u8"},
    ]
    description = {"grid": [1], "block": [1], "arguments": arguments}
    assert run(description, "--save-outputs", "out", ptx=TYPES) == 0
    assert np.load("out/argument0.npy").tolist() == [0x3FC0, 200, 0, 0x4000]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("array", "check"),
    [
        ({"dtype": "f16", "init": "arange"}, lambda x: (x == range(6)).all()),
        ({"dtype": "i8", "init": "zero"}, lambda x: (x == 0).all()),
        ({"dtype": "f64", "init": "nan"}, lambda x: np.isnan(x).all()),
        ({"dtype": "bf16", "init": "nan"}, lambda x: (x == 0x7FC0).all()),
        ({"dtype": "bf16", "init": "arange"}, lambda x: x[2] == 0x4000),
        ({"dtype": "u32"}, lambda x: len(set(x.tolist())) == 6),
        ({"dtype": "f32", "init": "random"}, lambda x: (np.abs(x) <= 1).all()),
    ],
)
def test_contents_of_arrays(array: dict[str, Any], check: Any) -> None:
    head = ".version 7.8\n.target sm_80\n.address_size 64\n"
    ptx = f"{head}.visible .entry nothing(.param .u64 p0)\n{{ ret; }}\n"
    arguments = [{"array": {"shape": [2, 3], **array}}]
    description = {"grid": [1], "block": [32], "arguments": arguments}
    assert run(description, "--save-outputs", "out", "--seed", "3", ptx=ptx) == 0
    found = np.load("out/argument0.npy")
    assert found.shape == (2, 3)
    assert check(found.reshape(-1))


def changed(**fields: Any) -> dict[str, Any]:
    return {**DESCRIPTION, **fields}


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in DESCRIPTION.items() if name != field}


def with_array(**fields: Any) -> dict[str, Any]:
    array = {"array": {**F32, **fields}}
    return changed(arguments=[array, *DESCRIPTION["arguments"][1:]])


def with_value(value: Any, dtype: Any) -> dict[str, Any]:
    number = {"value": value, "dtype": dtype}
    return changed(arguments=[*DESCRIPTION["arguments"][:2], number])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("{", "'launch.json': no JSON: "),
        ("[1]", "'launch.json': expected an object, got [1]"),
        (without("grid"), "'launch.json': grid: missing"),
        (without("arguments"), "'launch.json': arguments: missing"),
        (
            changed(grids=1),
            'unknown "grids", expected one of grid, block, arguments, kernel',
        ),
        (changed(grid=4), "grid: expected a list of 1 to 3, got 4"),
        (changed(grid=[]), "grid: expected a list of 1 to 3, got []"),
        (changed(grid=[0]), "grid[0]: expected an integer from 1 to 4294967296, got 0"),
        (
            changed(block=[32, 1.5]),
            "block[1]: expected an integer from 1 to 4294967296, got 1.5",
        ),
        (changed(block=[2048]), "expected a block of three numbers"),
        (
            changed(dynamic_shared=-1),
            "dynamic_shared: expected an integer of 0 or more, got -1",
        ),
        (changed(dynamic_shared=1 << 40), "shared memory"),
        (changed(kernel=3), "kernel: expected text or null, got 3"),
        (changed(kernel="sum"), "there is no kernel sum; the module has window_sum"),
        (changed(arguments={}), "arguments: expected a list, got {}"),
        (changed(arguments=[]), "kernel window_sum takes 3 arguments, got 0"),
        (changed(arguments=[7]), "arguments[0]: expected an object, got 7"),
        (changed(arguments=[{}]), 'arguments[0]: expected an object with "array" or'),
        (
            changed(arguments=[{"array": F32, "value": 1}]),
            'arguments[0]: unknown "value"',
        ),
        (with_array(dtype="f8"), "arguments[0].array.dtype: expected one of f16, bf16"),
        (with_array(init="one"), "arguments[0].array.init: expected one of random,"),
        (
            with_array(dtype="i32", init="nan"),
            "arguments[0].array: i32 has no nan",
        ),
        (
            with_array(shape=[]),
            "arguments[0].array.shape: expected a list of 1 to 32, got []",
        ),
        (
            with_array(shape=[4, -1]),
            "arguments[0].array.shape[1]: expected an integer from 1 to",
        ),
        (
            with_array(shape=[1 << 40]),
            "shape[0]: expected an integer from 1 to 4294967296",
        ),
        (with_array(shape=[1 << 20, 1 << 20]), "all arrays: "),
        (
            with_array(shape=[True]),
            "shape[0]: expected an integer from 1 to 4294967296",
        ),
        (with_array(size=4), 'arguments[0].array: unknown "size"'),
        (with_array(shape=[4]), "out-of-bounds"),
        (with_value("8", "i32"), 'or a number, got "8"'),
        (
            with_value(True, "i32"),
            "arguments[2].value: expected an integer or a number, got true",
        ),
        (with_value(8.5, "i32"), "arguments[2]: expected an i32, whole and from"),
        (with_value(1 << 31, "i32"), "to 2147483647, got 2147483648"),
        (
            with_value(10**30, None),
            "arguments[2].value: expected an integer, got an integer of 100 bits",
        ),
        (with_value(float("nan"), None), "no JSON: NaN is no number of it"),
        ('{"grid": ' + "[" * 100_000, "no JSON: nested too deep"),
        ('{"grid": ' + "9" * 5000, "no JSON: a number has too many digits"),
        ('{"grid": [1e999]}', "grid[0]: expected an integer from 1 to"),
        (with_value(8, "i64"), "argument 2 (window_sum_param_2)"),
        (with_value(8, "int"), "arguments[2].dtype: expected one of f16,"),
    ],
)
def test_mistakes_in_the_launch(
    description: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(description) == 1
    assert_one_error(capsys, message)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "cuda"], "runs on the emulator only, got --device cuda"),
        (["--target", "sm_80"], "--target is not for .ptx files"),
        (["--schedule", "stages=3,2"], "--schedule is not for .ptx files"),
        (["--function", "f"], "--function is not for .ptx files"),
        (["--repeat", "2"], "--repeat is not for .ptx files"),
        (["--allow-tf32"], "--allow-tf32 is not for .ptx files"),
        (["--trace-block", "1"], "give both"),
        (["--instruction-limit", "9"], "limit of 9"),
        (["--save-outputs", "launch.json"], "cannot make folder 'launch.json': "),
    ],
)
def test_mistakes_in_options(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(DESCRIPTION, *options) == 1
    assert_one_error(capsys, message)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("ptx", "message"),
    [
        ("no PTX at all", "this is not PTX"),
        ("", ".version"),
        (PTX.read_text().replace("bar.sync", "bar.dance", 1), "bar.dance"),
    ],
)
def test_text_that_is_no_ptx(
    ptx: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(DESCRIPTION, ptx=ptx) == 1
    assert_one_error(capsys, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([str(PTX)], "a .ptx file needs --launch FILE.json"),
        ([str(PTX), "--launch", "gone.json"], "cannot read 'gone.json': No such file"),
        (["gone.ptx", "--launch", str(LAUNCH)], "cannot read 'gone.ptx': No such file"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_missing_files(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main(arguments) == 1
    assert_one_error(capsys, message)


@pytest.mark.usefixtures("folder")
def test_bytes_that_are_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    Path("kernel.ptx").write_bytes(b"\xff\xfe")
    assert tool.main(["kernel.ptx", "--launch", str(LAUNCH)]) == 1
    assert_one_error(capsys, "'kernel.ptx' is no UTF-8 text")
    assert tool.main([str(PTX), "--launch", "kernel.ptx"]) == 1
    assert_one_error(capsys, "'kernel.ptx': no UTF-8 text")


@pytest.mark.usefixtures("folder")
def test_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    """Those who write to one are waited for; where nobody does, that is an error."""
    os.mkfifo("pipe.ptx")
    assert tool.main(["pipe.ptx", "--launch", str(LAUNCH)]) == 1
    why = "cannot read 'pipe.ptx': a pipe to which nobody writes"
    assert_one_error(capsys, why)
    reader = os.open("pipe.ptx", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open("pipe.ptx", os.O_WRONLY)
    os.write(writer, PTX.read_bytes())
    late = threading.Timer(0.1, os.close, [writer])
    late.start()
    assert tool.main(["pipe.ptx", "--launch", str(LAUNCH)]) == 0
    late.join()
    os.close(reader)


def assert_one_error(capsys: pytest.CaptureFixture[str], message: str) -> None:
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out


PRINTING = """
.version 7.8
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 form[7] = {104, 105, 32, 37, 37, 10, 0};
.visible .entry k()
{
    .reg .b64 %rd<2>;
    mov.u64 %rd1, form;
    { .param .b64 a; .param .b64 b; .param .b32 c;
    st.param.b64 [a], %rd1;
    st.param.b64 [b], 0;
    call.uni (c), vprintf, (a, b); }
    ret;
}
"""


@pytest.mark.usefixtures("folder")
def test_what_a_kernel_prints_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    launch = {"grid": [1], "block": [2], "arguments": []}
    assert run(launch, ptx=PRINTING) == 0
    assert re.search(r"printed +hi %\n +hi %\n", capsys.readouterr().out)


STRUCTURES = """
.version 7.8
.target sm_80
.address_size 64
.const .align 4 .b8 table[16];
.global .align 4 .u32 total;
.visible .entry k(.param .align 8 .b8 s[16], .param .u64 rows)
{
    .reg .b32 %r<9>; .reg .b64 %rd<9>;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 4;
    ld.param.u64 %rd2, [s];
    ld.param.u32 %r2, [s+8];
    ld.param.u64 %rd3, [rows];
    ld.global.u64 %rd4, [%rd3+8];
    add.u64 %rd4, %rd4, %rd1;
    ld.global.u32 %r3, [%rd4];
    ld.const.u32 %r4, [table+12];
    add.u32 %r3, %r3, %r2;
    add.u32 %r3, %r3, %r4;
    add.u64 %rd2, %rd2, %rd1;
    st.global.u32 [%rd2], %r3;
    red.global.add.u32 [total], 1;
    ld.global.u64 %rd5, [%rd3];
    red.global.add.u32 [%rd5], 2;
    ret;
}
"""


def test_structures_pointers_and_variables(folder: Path) -> None:
    counted = {"dtype": "u32", "shape": [32], "init": "arange"}
    one = {"dtype": "u32", "shape": [1], "init": "zero"}
    launch = {
        "grid": [2],
        "block": [16],
        "cooperative": True,
        "arguments": [
            {
                "struct": {
                    "size": 16,
                    "members": [
                        {"offset": 0, "array": counted | {"init": "zero"}},
                        {"offset": 8, "value": 100, "dtype": "i32"},
                    ],
                }
            },
            {"pointers": [{"array": one}, {"array": counted}]},
        ],
        "symbols": [
            {"name": "table", "array": {**one, "shape": [4], "init": "arange"}},
            {"name": "total", "array": one},
        ],
    }
    assert run(launch, "--save-outputs", "out", ptx=STRUCTURES) == 0
    assert np.load(folder / "out/total.npy").tolist() == [32]
    wanted = np.where(np.arange(32) < 16, np.arange(32) + 103, 0)
    np.testing.assert_array_equal(np.load(folder / "out/argument0.0.npy"), wanted)
    assert np.load(folder / "out/argument1.0.npy").tolist() == [64]
    assert np.load(folder / "out/argument1.1.npy").tolist() == list(range(32))


@pytest.mark.parametrize(
    ("pointers", "message"),
    [
        ([{"value": 1, "dtype": "u64"}], "arguments[0]"),
        ({"array": {"dtype": "u32", "shape": [1]}}, "arguments[0]"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_pointers_that_are_none(
    pointers: object, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = {"grid": [1], "block": [1], "arguments": [{"pointers": pointers}]}
    assert run(launch, ptx=STRUCTURES) == 1
    assert_one_error(capsys, message)


CLUSTERS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 p0)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
    mov.u32 %r2, %cluster_ctarank; st.global.u32 [%rd1], %r2;
    ret;
}
"""


def test_clusters_of_the_launch(folder: Path) -> None:
    array = {"dtype": "u32", "shape": [6], "init": "zero"}
    launch = {"grid": [6], "block": [1], "arguments": [{"array": array}]}
    saved = ("--save-outputs", "out")
    assert run(launch | {"cluster": [3]}, *saved, ptx=CLUSTERS) == 0
    assert np.load(folder / "out/argument0.npy").tolist() == [0, 1, 2, 0, 1, 2]
    assert run(launch | {"cluster": [4]}, ptx=CLUSTERS) == 1


COPIES = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry copies(.param .align 64 .b8 p0[128], .param .align 64 .b8 p1[256],
    .param .u64 p2)
{
    .shared .align 128 .b8 s[1024]; .shared .align 8 .b8 bar[8];
    .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .b16 %h<2>; .reg .pred %p<2>;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
    mov.b64 %rd0, p0; cvta.param.u64 %rd0, %rd0;
    mov.b64 %rd1, p1; cvta.param.u64 %rd1, %rd1; add.u64 %rd1, %rd1, 64;
    mov.u16 %h0, 1;
    cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes
        [s], [%rd0, {0, 0, 0}], [bar], {%h0};
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
        [s+512], [%rd1, {0, 0}], [bar];
W:
    mbarrier.try_wait.parity.shared.b64 %p0, [bar], 0;
    @!%p0 bra W;
    ld.param.u64 %rd2, [p2];
    ld.shared.u32 %r0, [s+32]; ld.shared.u32 %r1, [s+544];
    st.global.v2.u32 [%rd2], {%r0, %r1};
    ret;
}
"""


def test_tensor_maps(folder: Path) -> None:
    """As arguments and in a structure; a box of 16 pixels, and one of tiles."""
    images = {"dtype": "u32", "shape": [2, 9, 8], "init": "arange"}
    column = {"channels": 8, "pixels": 16, "lower": [0], "upper": [-1]}
    tiles = {"array": images | {"shape": [32, 8]}, "box": [16, 8]}
    members = [{"offset": 64, "tensor_map": tiles}]
    out = {"dtype": "u32", "shape": [2], "init": "zero"}
    launch = {
        "grid": [1],
        "block": [1],
        "arguments": [
            {"im2col_map": {"array": images} | column},
            {"struct": {"size": 256, "members": members}},
            {"array": out},
        ],
    }
    assert run(launch, "--save-outputs", "out", ptx=COPIES) == 0
    # The second pixel of the column, moved by one; the second row of the tile.
    assert np.load(folder / "out/argument2.npy").tolist() == [16, 8]


TILES = {"array": {"dtype": "f16", "shape": [8, 64]}, "box": [8, 300]}
COLUMN = {
    "array": {"dtype": "f16", "shape": [2, 9, 16]},
    "channels": 16,
    "pixels": 16,
    "lower": [0],
    "upper": [0],
    "interleave": 16,
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"tensor_map": TILES}, "the box (300, 8) is not from 1 to 256"),
        ({"im2col_map": COLUMN}, "one slice of 16 bytes"),
    ],
)
def test_a_tensor_map_that_the_driver_refuses(
    given: dict[str, Any], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = {"grid": [1], "block": [1], "arguments": [given]}
    assert run(launch, ptx=COPIES) != 0
    error = capsys.readouterr().err
    assert wanted in error
    assert "Traceback" not in error


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "member",
    [{"offset": 0}, {"offset": 0, "value": 1}, {"offset": 0, "dtype": "i32"}],
)
def test_a_member_is_an_array_or_a_value(
    member: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    launch = {"grid": [1], "block": [1], "arguments": []}
    launch["arguments"] = [{"struct": {"size": 8, "members": [member]}}]
    assert run(launch, ptx=STRUCTURES) != 0
    error = capsys.readouterr().err
    assert "in a structure" in error
    assert "Traceback" not in error
