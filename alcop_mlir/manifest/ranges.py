"""What values of a field may be, as annotations that whoever reads JSON enforces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class AtLeast:
    """A number that is not less."""

    least: int


@dataclass(frozen=True)
class OneOf:
    """One of these texts."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Matches:
    """A text that fits the regular expression as a whole."""

    pattern: str


Count = Annotated[int, AtLeast(0)]
Positive = Annotated[int, AtLeast(1)]
# Also the name of a file, and of a symbol in PTX.
Identifier = Annotated[str, Matches(r"[A-Za-z_$][\w$]*")]
FileName = Annotated[str, Matches(r"[\w$-][\w$.-]*")]
Sha256 = Annotated[str, Matches(r"[0-9a-f]{64}")]
