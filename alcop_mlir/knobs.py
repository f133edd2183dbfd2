"""Every environment variable that alcop_mlir reads, typed, in one place."""

from __future__ import annotations

import os
import re
from pathlib import Path

from alcop_mlir.errors import ConfigError


def bindings() -> str | None:
    """`ALCOP_MLIR_BINDINGS`: the package of MLIR bindings to use, as `torch_mlir`."""
    return os.environ.get("ALCOP_MLIR_BINDINGS") or None


def ptxas() -> str | None:
    """`ALCOP_PTXAS`: path of the ptxas to use, instead of the installed one."""
    return os.environ.get("ALCOP_PTXAS") or None


def gpu() -> str | None:
    """`ALCOP_GPU`: the GPU to choose schedules for, as `nvidia-smi` names it."""
    return os.environ.get("ALCOP_GPU") or None


def cache_dir() -> Path:
    """`ALCOP_CACHE_DIR`, else the user's cache directory: trained models, records."""
    given = os.environ.get("ALCOP_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "alcop_mlir"


def requires_certificates() -> bool:
    """`ALCOP_REQUIRE_CERTIFICATE=1`: kernels without a certificate are not launched."""
    given = os.environ.get("ALCOP_REQUIRE_CERTIFICATE", "0") or "0"
    if given not in ("0", "1"):
        raise ConfigError(
            f"ALCOP_REQUIRE_CERTIFICATE is '{given[:40]}', expected 0 or 1"
        )
    return given == "1"


def simulated_seconds() -> float:
    """`ALCOP_SIMULATED_SECONDS`: what a measurement by a pool's simulated device takes,
    to try out a pool without a GPU.
    """
    given = os.environ.get("ALCOP_SIMULATED_SECONDS") or "0"
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", given):
        raise ConfigError(
            f"ALCOP_SIMULATED_SECONDS is '{given[:40]}', expected seconds as 0.5"
        )
    return float(given)


def limit(variable: str) -> int | None:
    """`ALCOP_MAX_...`: a limit of `limits.py`; ConfigError where it is no number."""
    given = os.environ.get(variable)
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise ConfigError(
            f"{variable} is '{given[:40]}', expected a whole number below 10^18"
        )
    return int(given)
