"""Tests of alcop_mlir.torch use the models of examples/models."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "models"))
