"""What is read strictly: what is missing or odd is refused."""

from __future__ import annotations

from typing import Any

from alcop_mlir.errors import CertificateError

_MOST = (1 << 40) - 1  # of what statements count


def require(holds: bool, why: str) -> None:
    """CertificateError where something does not hold."""
    if not holds:
        raise CertificateError(f"this is no certificate: {why}")


def whole(value: Any, low: int | None = None, high: int | None = None) -> int:
    """A number, in a range."""
    require(type(value) is int, f"no whole number: {value!r:.40}")
    is_above, is_below = low is None or value >= low, high is None or value <= high
    require(is_above and is_below, f"{value} is not from {low} to {high}")
    return value


def signed(value: Any) -> int:
    """A number of elements, that may be negative."""
    return whole(value, -_MOST, _MOST)


def count(value: Any) -> int:
    """A number of elements, one at least."""
    return whole(value, 1, _MOST)
