"""Certificates of a bundle's kernels, for who launches no kernel without one.

That is asked for by `ALCOP_REQUIRE_CERTIFICATE=1`. A certificate is checked again
before the first launch, and what it requires of sizes at each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from alcop_mlir import codec, knobs, limits
from alcop_mlir.checker.check import check
from alcop_mlir.checker.text import read_kernel
from alcop_mlir.errors import CertificateError, ConfigError, LaunchError
from alcop_mlir.extents import number
from alcop_mlir.manifest.kernels import Kernel, SizeValue, number_of_blocks
from alcop_mlir.runtime.bundle import Bundle

_AXES = ("%ctaid.x", "%ctaid.y", "%ctaid.z")
Found = tuple[dict[str, Any], list[str]]  # a certificate, and the kernel's parameters


def required_certificates(bundle: Bundle) -> Certificates | None:
    """The bundle's certificates; None where nobody asks for them."""
    return Certificates(bundle) if knobs.requires_certificates() else None


class Certificates:
    """Those of one bundle; each is checked once."""

    def __init__(self, bundle: Bundle):
        self.bundle = bundle
        self._known: dict[Kernel, Found] = {}

    def check(self, kernels: Iterable[Kernel], sizes: Mapping[str, int]) -> None:
        """LaunchError where a kernel has no certificate that holds for its launch with
        these sizes.
        """
        for kernel in kernels:
            self._check(kernel, sizes)

    def _check(self, kernel: Kernel, sizes: Mapping[str, int]) -> None:
        try:
            if kernel not in self._known:
                self._known[kernel] = self._found(kernel)
            self._check_sizes(kernel, sizes)
        except (CertificateError, ConfigError) as error:
            raise LaunchError(
                f"kernel '{kernel.name}': {error}; ALCOP_REQUIRE_CERTIFICATE=0 "
                "launches it all the same"
            ) from None

    def _found(self, kernel: Kernel) -> Found:
        """A certificate for its block and shared memory, checked."""
        code = self.bundle.code_of(kernel)
        if code.certificates is None:
            raise CertificateError(
                "the bundle has no certificates, alcop-compile --certify makes them"
            )
        why = "the bundle has no certificate of it"
        listed = codec.parse(code.certificates, limits.JSON.most)
        for one in listed if isinstance(listed, list) else ():
            if not isinstance(one, dict) or one.get("entry") != kernel.name:
                continue
            found = one.get("certificate")
            if not isinstance(found, dict):
                why = f"its certificate says: {one.get('status')}"
                continue
            launched = (math.prod(kernel.block), kernel.shared_bytes)
            if (found.get("threads"), found.get("dynamic_bytes")) == launched:
                check(code.ptx, found)
                return found, read_kernel(code.ptx, kernel.name).parameters
        raise CertificateError(why)

    def _check_sizes(self, kernel: Kernel, sizes: Mapping[str, int]) -> None:
        found, parameters = self._known[kernel]
        values = dict(zip(parameters, kernel.arguments, strict=False))
        for one in found["requires"]:
            name = one["parameter"]
            argument = values.get(name)
            if name in _AXES:
                value = number_of_blocks(kernel.grid[_AXES.index(name)], sizes) - 1
            elif isinstance(argument, SizeValue):
                name, value = str(argument.size), number(argument.size, sizes)
            else:
                raise CertificateError(f"its certificate requires what {name} is")
            fits = one["low"] <= value <= one["high"]
            if not fits or value % one["multiple"]:
                raise CertificateError(
                    f"its certificate requires {name} from {one['low']} to "
                    f"{one['high']} and a multiple of {one['multiple']}, got {value}"
                )
