"""Bundles are replaced as a whole, and read within limits: whoever else is at work."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundles import PTX, bundle

from alcop_mlir.errors import ConfigError
from alcop_mlir.runtime import bundle_files
from alcop_mlir.runtime.bundle import MANIFEST, load, save

both_forms = pytest.mark.parametrize("name", ["out", "out.zip"])

# Saves bundles of two contents in turn, beginning with the one named by the argument.
WRITER = """
import sys
from itertools import count
from bundles import PTX, bundle
from alcop_mlir.runtime.bundle import save
print("ready", flush=True)
for number in count(int(sys.argv[2])):
    save(bundle(ptx=PTX + f"// {number % 2}\\n" * 3000), sys.argv[1])
"""
# Loads until it is killed, and says how often when its input ends.
READER = """
import sys, select
from alcop_mlir.runtime.bundle import load
print("ready", flush=True)
loads = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    load(sys.argv[1])
    loads += 1
print(loads)
"""
BOTH = [bundle(ptx=PTX + f"// {number}\n" * 3000) for number in range(2)]


def started(script: str, *arguments: Any) -> subprocess.Popen[str]:
    """A process that runs `script`, once it has begun."""
    here = str(Path(__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": here},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@both_forms
def test_a_writer_that_is_killed_leaves_a_whole_bundle(
    tmp_path: Path, name: str
) -> None:
    """At any point: what is there is the old bundle or the new one."""
    path = tmp_path / name
    save(BOTH[0], path)
    moments = random.Random(1)
    for _ in range(12):
        writer = started(WRITER, path, 0)
        time.sleep(moments.uniform(0, 0.03))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert load(path) in BOTH
    save(BOTH[1], path)  # what the killed ones left is in nobody's way
    assert load(path) == BOTH[1]
    if path.is_dir():
        assert len(list(path.iterdir())) == 3


@both_forms
def test_writers_and_readers_do_not_disturb_each_other(
    tmp_path: Path, name: str
) -> None:
    """Two of each: nobody fails, each load gives one of the bundles."""
    path = tmp_path / name
    save(BOTH[0], path)
    writers = [started(WRITER, path, first) for first in range(2)]
    readers = [started(READER, path) for _ in range(2)]
    time.sleep(1.5)
    outcomes = [reader.communicate("stop\n") for reader in readers]
    for writer in writers:
        assert writer.poll() is None, writer.communicate()
        writer.send_signal(signal.SIGKILL)
        assert writer.communicate()[1] == ""
    assert [errors for _, errors in outcomes] == ["", ""]
    assert all(int(loads) > 20 for loads, _ in outcomes)
    assert load(path) in BOTH


@pytest.mark.parametrize("step", range(1, 8))
def test_a_failure_at_any_step_leaves_a_whole_bundle(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with errors instead of signals, at each change of the directory."""
    path = tmp_path / "out"
    save(BOTH[0], path)
    left = step

    def failing(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise OSError(28, "No space left on device")
            return change(*given, **named)

        return changed

    with monkeypatch.context() as patch:
        for name in ("write_bytes", "replace", "unlink"):
            patch.setattr(Path, name, failing(getattr(Path, name)))
        try:
            save(BOTH[1], path)
        except ConfigError as error:
            assert str(error).endswith("No space left on device")  # noqa: PT017
    assert load(path) in BOTH


def test_a_bundle_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    """The reader begins again, and gets the new one."""
    path = tmp_path / "out"
    save(BOTH[0], path)
    tries = []

    def make(read: bundle_files.Read) -> str:
        manifest = json.loads(read(MANIFEST))
        if not tries:
            save(BOTH[1], path)
        tries.append(1)
        return read(manifest["modules"][0]["ptx"]["name"]).decode()

    assert bundle_files.reading(path, make) == BOTH[1].code["matmul"].ptx
    assert len(tries) == 2


def test_a_link_to_a_directory_stays_one(tmp_path: Path) -> None:
    """What it points to becomes the bundle."""
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    save(bundle(), tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert load(tmp_path / "real") == bundle()


def test_other_files_are_not_read(tmp_path: Path) -> None:
    """What no manifest names may be anything: here a pipe that nobody writes to."""
    save(bundle(), tmp_path / "out")
    os.mkfifo(tmp_path / "out" / "other.ptx")
    (tmp_path / "out" / "huge.ptx").write_bytes(b"")
    os.truncate(tmp_path / "out" / "huge.ptx", 1 << 40)
    assert load(tmp_path / "out") == bundle()
    save(bundle(), tmp_path / "out.zip")
    with zipfile.ZipFile(tmp_path / "out.zip", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("other.ptx", bytes(1 << 24))
    assert load(tmp_path / "out.zip") == bundle()


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "dangling", "loop"])
def test_only_regular_files_are_read(tmp_path: Path, kind: str) -> None:
    """A file of the bundle that is none is refused at once."""
    path = tmp_path / "out"
    save(bundle(), path)
    (ptx,) = path.glob("*.ptx")
    ptx.unlink()
    if kind == "pipe":
        os.mkfifo(ptx)
    elif kind == "folder":
        ptx.mkdir()
    else:
        to = {"device": "/dev/zero", "dangling": "nowhere", "loop": ptx.name}[kind]
        ptx.symlink_to(to)
    with pytest.raises(ConfigError, match=r"damaged bundle .*: (not a reg|no m|Too)"):
        load(path)
    (tmp_path / "pipe.zip").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"pipe\.zip': not a regular file"):
        load(tmp_path / "pipe.zip")


def test_a_small_archive_that_unpacks_to_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as the limit is reached, whatever the archive says of its sizes."""
    monkeypatch.setenv("ALCOP_MAX_BUNDLE", "1000000")
    path = tmp_path / "out.zip"
    save(bundle(), path)
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read(MANIFEST))
    ptx = bytes(4_000_000)
    manifest["modules"][0]["ptx"]["sha256"] = hashlib.sha256(ptx).hexdigest()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps(manifest))
        archive.writestr("matmul.ptx", ptx)
    assert path.stat().st_size < 10_000
    with pytest.raises(
        ConfigError,
        match=r"matmul\.ptx, with the files read before it, has more bytes than "
        r"allowed: expected at most 1000000; ALCOP_MAX_BUNDLE=N allows more",
    ):
        load(path)


def test_archives_of_many_files_and_other_forms_are_refused(tmp_path: Path) -> None:
    """Their lists, and LZMA's dictionaries, would take memory without limits."""
    path = tmp_path / "out.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(50_000):
            archive.writestr(f"{number:06}.ptx", b"")
    with pytest.raises(ConfigError, match="the zip archive has too many files"):
        load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(MANIFEST, b"{}")
    with pytest.raises(ConfigError, match="compressed in a way that bundles are not"):
        load(path)


# Like text that is farther apart than deflate looks back.
FAR = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(1024)) * 4


def packed(path: Path) -> bytes:
    """A bundle at `path` whose PTX is packed; the member that holds it."""
    save(bundle(ptx=f"{PTX}// {FAR}\n"), path)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == [MANIFEST, "matmul.ptx.xz", "matmul.cubin"]
        return archive.read("matmul.ptx.xz")


def with_packed(path: Path, data: bytes) -> None:
    """The same bundle with another such member."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, held in (contents | {"matmul.ptx.xz": data}).items():
            archive.writestr(name, held)


def test_code_is_packed_where_that_is_shorter(tmp_path: Path) -> None:
    path = tmp_path / "out.zip"
    data = packed(path)
    assert len(data) < 0.4 * len(zlib.compress(FAR.encode()))
    assert lzma.decompress(data).decode() == f"{PTX}// {FAR}\n"
    assert load(path) == bundle(ptx=f"{PTX}// {FAR}\n")
    save(load(path), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == path.read_bytes()
    save(bundle(), path)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == [MANIFEST, "matmul.ptx", "matmul.cubin"]


def test_packed_code_that_unpacks_to_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size, and the memory that it asks for; also what is no such file."""
    path = tmp_path / "out.zip"
    whole = packed(path)
    monkeypatch.setenv("ALCOP_MAX_BUNDLE", "1000000")
    with_packed(path, lzma.compress(bytes(20_000_000)))
    tracemalloc.start()
    with pytest.raises(ConfigError, match=r"matmul\.ptx, with the files .* at most 1"):
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15_000_000  # 8 MiB is the dictionary
    large = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 2**28}]
    with_packed(path, lzma.compress(b"ptx", filters=large))
    with pytest.raises(ConfigError, match=r"matmul\.ptx\.xz: Memory usage limit"):
        load(path)
    with_packed(path, whole[:-30])
    with pytest.raises(ConfigError, match=r"matmul\.ptx\.xz is cut off"):
        load(path)
    with_packed(path, b"no such file")
    with pytest.raises(ConfigError, match=r"matmul\.ptx\.xz: Input format not"):
        load(path)


def test_a_python_without_lzma_writes_what_it_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.zip"
    packed(path)
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(ConfigError, match=r"matmul\.ptx\.xz: this Python has no lzma"):
        load(path)
    made = bundle(ptx=f"{PTX}// {FAR}\n")
    save(made, path)
    assert load(path) == made


@pytest.mark.parametrize("suffix", ["", ".zip"])
def test_a_path_that_is_too_long_is_one_line(tmp_path: Path, suffix: str) -> None:
    """Before anything is compiled, or when it is written."""
    path = tmp_path / ("q" * 5000 + suffix)
    with pytest.raises(
        ConfigError, match=r"cannot write '.*\.\.\.qqq.*too long"
    ) as one:
        save(bundle(), path)
    assert len(str(one.value)) < 300
    with pytest.raises(ConfigError, match="no such file or directory"):
        load(path)
