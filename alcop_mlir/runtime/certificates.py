"""Certificates of a bundle's kernels, for who launches no kernel without one.

That is asked for by `ALCOP_REQUIRE_CERTIFICATE=1`. A certificate is checked again
before the first launch, and what it requires of sizes at each.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from alcop_mlir import codec, knobs, limits
from alcop_mlir.checker.check import check
from alcop_mlir.checker.ptx.text import read_kernel
from alcop_mlir.errors import CertificateError, ConfigError, LaunchError
from alcop_mlir.extents import number
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import (
    MOST_ADDRESS,
    Kernel,
    Pointer,
    SizeValue,
    Variant,
    number_of_blocks,
)
from alcop_mlir.manifest.promises import promises
from alcop_mlir.manifest.statements import stated
from alcop_mlir.runtime.bundle import Bundle

_AXES = ("%ctaid.x", "%ctaid.y", "%ctaid.z")
_Launch = tuple[Function, Variant, Kernel]
Found = tuple[dict[str, Any], list[str]]  # a certificate, and the kernel's parameters


def required_certificates(bundle: Bundle) -> Certificates | None:
    """The bundle's certificates; None where nobody asks for them."""
    return Certificates(bundle) if knobs.requires_certificates() else None


class Certificates:
    """Those of one bundle; each is checked once."""

    def __init__(self, bundle: Bundle):
        self.bundle = bundle
        self._known: dict[_Launch, Found] = {}

    def check(
        self,
        function: Function,
        variants: Iterable[Variant],
        running: Container[Kernel],
        sizes: Mapping[str, int],
    ) -> None:
        """LaunchError where a kernel that runs has no certificate that holds for its
        launch with these sizes.

        function, variants: what is launched
        """
        for variant in variants:
            for kernel in variant.kernels:
                if kernel in running:
                    self._check((function, variant, kernel), sizes)

    def _check(self, launch: _Launch, sizes: Mapping[str, int]) -> None:
        kernel = launch[2]
        try:
            if launch not in self._known:
                self._known[launch] = self._found(*launch)
            self._check_sizes(launch, sizes)
        except (CertificateError, ConfigError) as error:
            raise LaunchError(
                f"kernel '{kernel.name}': {error}; ALCOP_REQUIRE_CERTIFICATE=0 "
                "launches it all the same"
            ) from None

    def _found(self, function: Function, variant: Variant, kernel: Kernel) -> Found:
        """A certificate for its block, shared memory and arrays, checked."""
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
            if kernel.block[1:] != (1, 1):
                why = "its blocks have more than one dimension"
                break
            launched = (kernel.block[0], kernel.shared_bytes)
            if (found.get("threads"), found.get("dynamic_bytes")) == launched:
                check(code.ptx, found)
                parameters = read_kernel(code.ptx, kernel.name).parameters
                given = promises(function, variant, kernel, parameters)
                bounds = found["bounds"] or given
                placed = found["placed"]
                if given != {name: bounds[name] for name in given}:
                    why = "its certificate is for other arrays or blocks"
                elif placed and placed != stated(function, kernel, parameters):
                    why = "its certificate is for other results"
                else:
                    return found, parameters
        raise CertificateError(why)

    def _check_sizes(self, launch: _Launch, sizes: Mapping[str, int]) -> None:
        found, parameters = self._known[launch]
        kernel = launch[2]
        values = dict(zip(parameters, kernel.arguments, strict=False))
        for one in found["requires"]:
            name = one["parameter"]
            argument = values.get(name)
            if name in _AXES:
                value = number_of_blocks(kernel.grid[_AXES.index(name)], sizes) - 1
            elif isinstance(argument, Pointer):
                name, value = f"the address of {argument.array}", MOST_ADDRESS
                _check_size(name, 1, 0, MOST_ADDRESS, one["multiple"])
                _check_size(name, 0, one["low"], one["high"], 1)
            elif isinstance(argument, SizeValue):
                name, value = str(argument.size), number(argument.size, sizes)
            else:
                raise CertificateError(f"its certificate requires what {name} is")
            _check_size(name, value, one["low"], one["high"], one["multiple"])
        for name, given in (found["bounds"] or {"sizes": {}})["sizes"].items():
            _check_size(name, sizes[name], *given)


def _check_size(name: str, value: int, low: int, high: int, multiple: int) -> None:
    if not low <= value <= high or value % multiple:
        raise CertificateError(
            f"its certificate requires {name} from {low} to {high} and a multiple of "
            f"{multiple}, got {value}"
        )
