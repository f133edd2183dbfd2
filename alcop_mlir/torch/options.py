"""What `torch.compile(..., options={...})` and `export(..., ...)` may be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch

from alcop_mlir.compilation import compiler
from alcop_mlir.errors import ConfigError, check_known
from alcop_mlir.frozen import frozen
from alcop_mlir.schedule import Partial
from alcop_mlir.target import DEFAULT_TARGET, Target, find_target, newest_target
from alcop_mlir.variants import DEFAULT_VARIANTS


@frozen
class Options:
    """Those of `alcop_mlir.compile`, and whether bundles are kept.

    target: "" is the newest that runs on the GPU where the arrays are, else the default
    schedule: tile sizes and stages of all contractions; "" leaves them to the compiler
    cache: keep bundles in the cache directory, and take those that are there
    """

    target: str = ""
    schedule: str = ""
    allow_tf32: bool = False
    variants: int = DEFAULT_VARIANTS
    cache: bool = True

    def for_device(self, device: torch.device) -> compiler.Options:
        """The compiler's options for arrays on `device`; ConfigError for wrong ones."""
        return compiler.Options(
            target=find_target(self.target) if self.target else _target_of(device),
            schedule=Partial.parse(self.schedule) if self.schedule else None,
            allow_tf32=self.allow_tf32,
            variants=self.variants,
        )


def read(given: Mapping[str, Any] | None) -> Options:
    """The options in `given`; ConfigError for unknown names and values of no use."""
    known = {one.name: type(getattr(Options(), one.name)) for one in fields(Options)}
    for name, value in (given or {}).items():
        check_known("option", name, known)
        if type(value) is not known[name]:
            raise ConfigError(
                f"option '{name}' is {value!r}, expected a {known[name].__name__}"
            )
    chosen = Options(**(given or {}))
    chosen.for_device(torch.device("cpu"))
    return chosen


def _target_of(device: torch.device) -> Target:
    if device.type != "cuda":
        return find_target(DEFAULT_TARGET)
    major, minor = torch.cuda.get_device_capability(device)
    found = newest_target(10 * major + minor)
    if found is None:
        raise ConfigError(f"{device} is an sm_{major}{minor}, older than all targets")
    return found
