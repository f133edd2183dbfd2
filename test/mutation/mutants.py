"""Seeded mutants of all that users give: what each tool is to run on damaged input.

A mutant is a tool, its arguments and the files that they name, made in a folder of its
own. The same seed gives the same mutants.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MLIR = """func.func @f(%A: memref<32x16xf16>, %B: memref<16x32xf16>,
                   %C: memref<32x32xf32>) {
  linalg.matmul ins(%A, %B : memref<32x16xf16>, memref<16x32xf16>)
                outs(%C : memref<32x32xf32>)
  return
}
"""
ADD = """#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @add(%A: memref<?x8xf32>, %B: memref<?x8xf32>, %C: memref<?x8xf32>) {
  linalg.generic {indexing_maps = [#id, #id, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%A, %B : memref<?x8xf32>, memref<?x8xf32>) outs(%C : memref<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return
}
"""
PTX = """.version 7.8
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 out, .param .u32 n)
.maxntid 64, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  .reg .f32 %f<3>;
  .shared .align 16 .b8 tile[256];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r4, tile;
  ld.global.f32 %f1, [%rd3+0];
  mul.rn.f32 %f2, %f1, 0f40000000;
  st.global.f32 [%rd3], %f2;
  bar.sync 0;
DONE:
  ret;
}
"""
LAUNCH = {
    "kernel": "scale",
    "grid": [1],
    "block": [64],
    "dynamic_shared": 0,
    "arguments": [
        {"array": {"dtype": "f32", "shape": [8, 8], "init": "random"}},
        {"value": 64, "dtype": "i32"},
    ],
}
# Values of JSON that no member expects, or only some do.
VALUES: tuple[Any, ...] = (
    1,
    2,
    32,
    64,
    "f16",
    "u8",
    "zero",
    None,
    True,
    -1,
    0,
    1.5,
    2**31,
    2**63,
    10**30,
    -(10**30),
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 5000,
    "\x00",
    "../../x",
    "é",
    [],
    [[]],
    {},
    {"a": 1},
    [0] * 1000,
)
# What a part of a text is replaced by.
TEXTS = (
    "",
    "0",
    "-1",
    "99999999999999999999",
    "9" * 5000,
    "(" * 5000,
    "[" * 5000,
    "{" * 100,
    "<" * 3000,
    "1<<99999999999",
    "1<<-1",
    "0x",
    "%",
    ";",
    ":",
    '"',
    "//",
    "/*",
    "\x00",
    "é",
    "\n",
    ".b128",
    "+",
    "|",
    "!" * 100,
    ",,",
    "memref<?x?xf16>",
    "index",
    "nan",
)
LONG = "q" * 5000


@dataclass(frozen=True)
class Mutant:
    """A command on files of the folder that it is to run in.

    tool:    as in `alcop_mlir.tools`
    outputs: paths that it may write
    """

    tool: str
    arguments: tuple[str, ...]
    files: dict[str, bytes]
    outputs: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()  # of what, and to what


def mutant(kind: str, seed: int) -> Mutant:
    """The mutant number `seed` of a class."""
    return CLASSES[kind](random.Random(f"{kind} {seed}"))


def of_mlir(rng: random.Random) -> Mutant:
    """MLIR text, compiled or run through a pass."""
    text = damaged_text(rng, rng.choice((MLIR, ADD)))
    if rng.random() < 0.5:
        passes = rng.choice(("--canonicalize", "--alcop-raise-contractions"))
        return Mutant("opt", ("in.mlir", passes, "-o", "out"), {"in.mlir": text}, OUT)
    return Mutant(
        "compile", ("in.mlir", "--no-ptxas", "-o", "out"), {"in.mlir": text}, OUT
    )


def of_bundle(rng: random.Random) -> Mutant:
    """A bundle, as an archive or a directory, with anything in it damaged."""
    contents = dict(bundle())
    links = []
    what = rng.choice(("manifest", "manifest", "value", "value", "ptx", "file", "zip"))
    names = sorted(contents)
    if what == "value":
        manifest = json.loads(contents["manifest.json"])
        change_value(rng, manifest)
        contents["manifest.json"] = json.dumps(manifest).encode()
    elif what == "manifest":
        contents["manifest.json"] = damaged_text(
            rng, contents["manifest.json"].decode()
        )
    elif what == "ptx":
        name = next(name for name in names if name.endswith(".ptx"))
        contents[name] = damaged_text(rng, contents[name].decode())
        manifest = contents["manifest.json"].decode()
        old = json.loads(manifest)["modules"][0]["ptx"]["sha256"]
        new = hashlib.sha256(contents[name]).hexdigest()
        contents["manifest.json"] = manifest.replace(old, new).encode()
    elif what == "file":
        name = rng.choice(names)
        data = contents.pop(name)
        if rng.random() < 0.5:
            links.append(
                (f"in/{name}", rng.choice(("/dev/zero", ".", "no", "/etc/passwd")))
            )
        contents[rng.choice(("x.ptx", "../x.ptx", "x", "manifest.json"))] = data
    options = ("--device", "emulator", "--time-limit", "2")
    if what != "zip" and (links or rng.random() < 0.5):
        files = {f"in/{Path(name).name}": data for name, data in contents.items()}
        return Mutant("run", ("in", *options), files, (), tuple(links))
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", rng.choice((0, 8))) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    packed = data.getvalue()
    if what == "zip":
        packed = damaged_bytes(rng, packed)
    return Mutant("run", ("in.zip", *options), {"in.zip": packed})


def of_ptx(rng: random.Random) -> Mutant:
    """PTX text, run on the emulator."""
    files = {"in.ptx": damaged_text(rng, PTX), "l.json": json.dumps(LAUNCH).encode()}
    options = ("--launch", "l.json", "--time-limit", "2")
    return Mutant("run", ("in.ptx", *options), files)


def of_launch(rng: random.Random) -> Mutant:
    """The launch file of a kernel."""
    launch = json.loads(json.dumps(LAUNCH))
    change_value(rng, launch)
    text = json.dumps(launch)
    data = damaged_text(rng, text) if rng.random() < 0.3 else text.encode()
    files = {"in.ptx": PTX.encode(), "l.json": data}
    options = ("--launch", "l.json", "--time-limit", "2", "--save-outputs", "out")
    return Mutant("run", ("in.ptx", *options), files, OUT)


def of_records(rng: random.Random) -> Mutant:
    """A file of records, which is imported or explained from."""
    lines = []
    for _ in range(rng.randrange(1, 4)):
        record = json.loads(record_text())
        if rng.random() < 0.8:
            change_value(rng, record)
        lines.append(json.dumps(record))
    text = "\n".join(lines)
    data = damaged_text(rng, text) if rng.random() < 0.3 else text.encode()
    files = {"in.jsonl": data}
    return Mutant("tune", ("--import", "in.jsonl", "--records", "out"), files, OUT)


def of_options(rng: random.Random) -> Mutant:
    """Options of all tools, with values that they do not expect."""
    tool = rng.choice(tuple(OPTIONS))
    given = [rng.choice(("in.mlir", "in.ptx", "in", LONG, "", "-q"))]
    for _ in range(rng.randrange(1, 4)):
        name = rng.choice(OPTIONS[tool])
        value = rng.choice((*VALUE_TEXTS, rng.choice(TEXTS).replace("\x00", "?")))
        given += [f"{name}={value}"] if rng.random() < 0.6 else [name, value]
    if tool == "compile":
        given.append("--no-ptxas")
    rng.shuffle(given)
    files = {"in.mlir": ADD.encode(), "in.ptx": PTX.encode()}
    paths = [one.partition("=")[2] for one in given] + given
    return Mutant(tool, tuple(given), files, tuple(filter(None, paths)))


OUT = ("out",)
OPTIONS = {
    "compile": ("--target", "--schedule", "-o", "--emit", "--no-such"),
    "run": (
        "--device",
        "--target",
        "--schedule",
        "--function",
        "--sizes",
        "--seed",
        "--repeat",
        "--trace",
        "--trace-block",
        "--visibility",
        "--emulator-schedule",
        "--instruction-limit",
        "--time-limit",
        "--launch",
        "--save-outputs",
    ),
    "opt": ("-o", "--pass-pipeline", "--alcop-split-k", "--no-such"),
    "tune": ("--target", "--records", "--import", "--measure", "--budget"),
}
VALUE_TEXTS = (
    "--",
    "",
    "0",
    "-1",
    "1",
    "sm_80",
    "out",
    "/dev/full/x",
    "no/such/out",
    LONG,
    "9" * 5000,
    "M=999999999999",
    "d0=1,d0=2",
    "raster=" + "9" * 5000,
    "block=0,0,0 warp=0,0 stages=0,0",
    "random(" + "9" * 5000 + ")",
    "builtin.module(canonicalize)",
    "builtin.module(" * 2000,
    "emulator",
    "mlir",
)
CLASSES: dict[str, Callable[[random.Random], Mutant]] = {
    "MLIR": of_mlir,
    "bundles": of_bundle,
    "PTX": of_ptx,
    "launch files": of_launch,
    "records": of_records,
    "options": of_options,
}
# How many of each class, so that all take one minute on two cores.
COUNTS = {
    "MLIR": 500,
    "bundles": 800,
    "PTX": 900,
    "launch files": 300,
    "records": 400,
    "options": 300,
}


@cache
def bundle() -> dict[str, bytes]:
    """The files of a bundle that the compiler makes of `ADD`."""
    from alcop_mlir.compilation import compiler, inputs
    from alcop_mlir.runtime import bundle_files
    from alcop_mlir.runtime.bundle import _files

    options = compiler.Options(use_ptxas=False)
    made = compiler.compile_source(inputs.read_text(ADD), options)
    assert bundle_files.MANIFEST == "manifest.json"
    return _files(made, lambda name, _: name)


@cache
def record_text() -> str:
    """A record as it is stored."""
    from alcop_mlir.schedule import Schedule
    from alcop_mlir.tuning import records
    from alcop_mlir.tuning.problem import Problem

    setting = records.Setting("sm_80", "simulated", "A100", "1", "0", "ab")
    record = records.Record(
        Problem(32, 32, 16), Schedule(), setting, records.now(), 1e-3
    )
    return json.dumps(records.to_json(record))


def damaged_text(rng: random.Random, text: str) -> bytes:
    """`text` with a few changes: of characters, words, numbers, lines, or bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice(_CHANGES)(rng, text)
    data = text.encode()
    return damaged_bytes(rng, data) if rng.random() < 0.1 else data


def _replace_part(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(TEXTS) + text[at + rng.randrange(8) :]


def _replace_word(rng: random.Random, text: str) -> str:
    words = text.split(" ")
    at = rng.randrange(len(words))
    words[at] = rng.choice((*TEXTS, rng.choice(words)))
    return " ".join(words)


def _replace_digits(rng: random.Random, text: str) -> str:
    places = [number for number, one in enumerate(text) if one.isdigit()]
    if not places:
        return text
    at = rng.choice(places)
    number = rng.choice(("0", "1", "7", "-3", "999999999999", "4294967296"))
    return text[:at] + number + text[at + 1 :]


def _move_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


_CHANGES = (
    _replace_part,
    _replace_part,
    _replace_word,
    _replace_word,
    _replace_digits,
    _replace_digits,
    _move_line,
    _cut,
)


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, or the end cut off."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(
        changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.2 else changed
    )


def change_value(rng: random.Random, value: Any) -> None:
    """Replace, remove or add one member somewhere in a JSON value."""
    places = list(_places(value))
    holder, key = rng.choice(places)
    action = rng.random()
    if action < 0.15:
        del holder[key]
    elif action < 0.25 and isinstance(holder, list):
        holder *= rng.choice((2, 1000))
    elif action < 0.3 and isinstance(holder, dict):
        holder[rng.choice(("x", "", "schema", "é"))] = rng.choice(VALUES)
    elif action < 0.35:
        holder[key] = json.loads("[" * 500 + "]" * 500)
    else:
        holder[key] = rng.choice(VALUES)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def write(one: Mutant, folder: Path) -> None:
    """Make the files of a mutant."""
    for name, data in one.files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    for name, to in one.links:
        (folder / name).parent.mkdir(exist_ok=True)
        if not os.path.lexists(folder / name):
            (folder / name).symlink_to(to)
