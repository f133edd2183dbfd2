"""What values of a field may be, as annotations that the codec enforces."""

from __future__ import annotations

from typing import Annotated

from alcop_mlir.codec_forms import Length, Matches, Range

Count = Annotated[int, Range(0)]
Positive = Annotated[int, Range(1)]
# Also the name of a file, and of a symbol in PTX.
Identifier = Annotated[str, Matches(r"[A-Za-z_$][A-Za-z0-9_$]*")]
FileName = Annotated[str, Matches(r"[A-Za-z0-9_$-][A-Za-z0-9_$.-]*")]
Rank = Length(0, 32)  # dimensions: the most that every NumPy has
Sha256 = Annotated[str, Matches(r"[0-9a-f]{64}")]
