"""Make `.venv` and install the project into it; return at once when that is done.

usage: PYTHON scripts/setup_env.py [EXTRA ...]     (the Makefile calls it)

The environment uses the interpreter that runs this file. `.venv/setup.stamp`, written
last, says what was installed for which pyproject.toml. A missing one means that a
set-up was broken off: the environment is then made anew. A changed pyproject.toml or
another extra installs only the difference. What pip said is in `.venv/setup.log`.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import select
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ROOT / "pyproject.toml"
VENV = ROOT / ".venv"
STAMP = VENV / "setup.stamp"
LOG = VENV / "setup.log"

# Rough MB to download, for the message only; "" is the project's own dependencies.
DOWNLOAD_MB = {
    "": 210,
    "cuda12": 136,
    "cuda13": 69,
    "plots": 35,
    "ptxas": 130,
    "test": 5,
    "lint": 80,
}

INSTALLING = "Installing collected packages: "  # what pip says when it has all files

# pip takes these from the user's environment; none of them makes sense in `.venv`.
FOREIGN = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")


class SetupError(Exception):
    """Something that the user has to mend, in one line."""


def main(extras: set[str]) -> None:
    """Set up unless `.venv` already has what is wanted."""
    if unknown := extras - set(DOWNLOAD_MB):
        known = ", ".join(filter(None, DOWNLOAD_MB))
        raise SetupError(f"no such extra: {', '.join(unknown)}; there are {known}")
    if is_ready(read_stamp(), wanted(), extras):
        return
    with only_one():
        stamp = read_stamp()
        if not is_ready(stamp, wanted(), extras):
            set_up(stamp, wanted(), extras)


def wanted() -> dict[str, str]:
    """What an environment made now would be made of."""
    return {
        "root": str(ROOT),
        "python": "{}.{}".format(*sys.version_info),
        "base": sys.base_prefix,
        "project": hashlib.sha256(PROJECT.read_bytes()).hexdigest(),
    }


def read_stamp() -> dict[str, str]:
    """What `.venv` was made of; empty where no set-up came to its end."""
    try:
        lines = STAMP.read_text("utf-8").splitlines()
    except OSError:
        return {}
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


def write_stamp(stamp: dict[str, str]) -> None:
    """Say what `.venv` is made of, in one step."""
    fresh = STAMP.with_suffix(".new")
    fresh.write_text("".join(f"{k}={v}\n" for k, v in stamp.items()), "utf-8")
    fresh.replace(STAMP)


def is_ready(stamp: dict[str, str], want: dict[str, str], extras: set[str]) -> bool:
    """Is everything there, for this project file and interpreter?"""
    return stamp_extras(stamp) >= extras and want.items() <= stamp.items()


def is_usable(stamp: dict[str, str], want: dict[str, str]) -> bool:
    """Can the environment be kept and added to?"""
    return all(stamp.get(key) == want[key] for key in ("root", "python", "base"))


def stamp_extras(stamp: dict[str, str]) -> set[str]:
    """The extras that were installed."""
    return set(stamp.get("extras", "").split())


@contextmanager
def only_one() -> Generator[None]:
    """Let a second set-up of the same tree wait for the first."""
    with PROJECT.open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of .venv")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def set_up(stamp: dict[str, str], want: dict[str, str], extras: set[str]) -> None:
    """Make or complete the environment, and write the stamp when all is well."""
    start = time.monotonic()
    keep = is_usable(stamp, want)
    had = stamp_extras(stamp) | {""} if keep else set[str]()
    megabytes = sum(DOWNLOAD_MB.get(extra, 0) for extra in {"", *extras} - had)
    extras = (extras | had) - {""}
    listed = f"[{','.join(sorted(extras))}]" if extras else ""

    if not keep:
        leave_environment()
        clear_environment()
        say(f"making .venv with Python {sys.version.split()[0]}")
        make_environment()
    download = f", about {megabytes} MB to download" if megabytes else ""
    say(f"installing alcop-mlir{listed}{download}")
    run_pip(["install", "--editable", f"{ROOT}{listed}"])
    write_stamp({**want, "extras": " ".join(sorted(extras))})
    say(f"ready after {time.monotonic() - start:.0f} s")


def leave_environment() -> None:
    """Go on in the interpreter behind `.venv`, if run by the one that must go."""
    if Path(sys.prefix) == VENV:
        behind = os.path.realpath(sys.executable)
        os.execv(behind, [behind, "-I", *sys.argv])


def clear_environment() -> None:
    """Take away an environment of ours, its log last: the log says that it is ours."""
    if VENV.exists() and not LOG.exists():
        raise SetupError(".venv was made by something else: move it out of the way")
    VENV.mkdir(exist_ok=True)
    LOG.touch()
    STAMP.unlink(missing_ok=True)
    for entry in set(VENV.iterdir()) - {LOG}:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    LOG.write_bytes(b"")


def make_environment() -> None:
    """A new `.venv` with pip in it, with or without Python's own ensurepip."""
    try:
        import venv
    except ImportError:
        raise SetupError(f"Python has no venv module: {advice()}") from None
    venv.create(VENV, symlinks=True, with_pip=False)
    if importlib.util.find_spec("ensurepip"):
        bootstrap = [str(python()), "-m", "ensurepip", "--default-pip"]
        if call(bootstrap, environment()) == 0:
            return
    # Debian and Ubuntu ship ensurepip apart. Any pip will do to fetch another.
    pip = importlib.util.find_spec("pip")
    if pip is None or pip.origin is None:
        raise SetupError(f"Python has neither ensurepip nor pip: {advice()}")
    env = environment() | {"PYTHONPATH": str(Path(pip.origin).parents[1])}
    install = [str(python()), "-m", "pip", "install", "--ignore-installed", "pip"]
    if call(install, env) != 0:
        raise SetupError(f"pip could not install itself into .venv: {advice()}")


def advice() -> str:
    """What to install where Python comes without pip, for this machine's packager."""
    version = "{}.{}".format(*sys.version_info)
    packagers = {
        "/usr/bin/apt-get": f"apt-get install python{version}-venv",
        "/usr/bin/dnf": "dnf install python3-pip",
        "/sbin/apk": "apk add py3-pip",
    }
    for path, command in packagers.items():
        if Path(path).exists():
            return f"`{command}`, or set PYTHON to another Python"
    return "install pip for it, or set PYTHON to another Python"


def python() -> Path:
    """The environment's interpreter."""
    return VENV / "bin" / "python"


def environment() -> dict[str, str]:
    """The caller's variables, less those that would lead pip out of `.venv`."""
    kept = {k: v for k, v in os.environ.items() if k not in FOREIGN}
    return kept | {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}


def call(command: list[str], env: dict[str, str]) -> int:
    """Run `command` with its output in the log."""
    with LOG.open("ab") as log:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env
        ).returncode


def run_pip(arguments: list[str]) -> None:
    """Run pip in `.venv`, telling what it does; SetupError if it fails."""
    command = [str(python()), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    process = subprocess.Popen(
        command + arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(),
    )
    lines: list[str] = []
    with process, LOG.open("a", encoding="utf-8") as log, Ticker() as ticker:
        for line in lines_of(process):
            if not line.strip():
                ticker.tick()
                continue
            lines.append(line)
            print(line, file=log, flush=True)
            if line.startswith(INSTALLING):
                STAMP.unlink(missing_ok=True)  # before it, nothing has changed
            told = activity(line)
            if told != ticker.text:
                ticker.begin(told)
    if process.returncode != 0:
        raise SetupError(f"{complaint(lines)} (more in .venv/setup.log)")


def complaint(lines: list[str]) -> str:
    """Why pip failed, from what it said."""
    if any("Retrying (" in line for line in lines):
        return "the package index does not answer"
    errors = [line.partition("ERROR: ")[2] for line in lines if "ERROR: " in line]
    reason = (errors or lines or ["no reason given"])[-1].strip()
    if reason.startswith("No matching distribution"):
        return f"{reason}, Python {sys.version.split()[0]}, {sysconfig.get_platform()}"
    return f"pip: {reason}"


def lines_of(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Lines of the output as they come; an empty one each second that none comes."""
    assert process.stdout is not None
    pending = b""
    while True:
        if not select.select([process.stdout], [], [], 1)[0]:
            yield ""
            continue
        chunk = os.read(process.stdout.fileno(), 1 << 16)
        if not chunk:
            break
        *full, pending = (pending + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in full)
    yield pending.decode(errors="replace")


def activity(line: str) -> str:
    """What a line of pip's means to the one who waits; nothing for most of them."""
    found = re.match(r"\s*Downloading (?:\S*/)?([^-\s/]+)-\S+ \(([\d.]+ [MG]B)\)", line)
    if found:
        return f"downloading {found[1].replace('_', '-')}, {found[2]}"
    if line.startswith(INSTALLING):
        count = line.count(",") + 1
        return f"unpacking {count} packages" if count > 1 else ""
    if "Retrying (" in line:
        return "no answer from the package index, trying again"
    return ""


class Ticker:
    """A line for each activity; on a terminal, with seconds that count up."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty()
        self.text = ""
        self.since = 0.0

    def __enter__(self) -> Ticker:
        return self

    def __exit__(self, *_: object) -> None:
        self.begin("")

    def begin(self, text: str) -> None:
        """What goes on from now; empty where it is not worth telling."""
        if self.live and self.text:
            print()
        self.text = text
        self.since = time.monotonic()
        if text and not self.live:
            say(f"  {text}")
        self.tick()

    def tick(self) -> None:
        """Let the seconds move on."""
        if self.live and self.text:
            seconds = time.monotonic() - self.since
            print(f"\r  {self.text}  {seconds:.0f} s ", end="", flush=True)


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


if __name__ == "__main__":
    try:
        main(set(sys.argv[1:]))
    except (SetupError, OSError) as error:
        sys.exit(f"error: set-up failed: {error}")
    except KeyboardInterrupt:
        sys.exit("\nset-up interrupted; the next run starts it afresh")
