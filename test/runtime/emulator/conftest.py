"""Lets the tests of this folder import the helpers that stand beside them."""

from __future__ import annotations

import sys
from pathlib import Path

# Needed under pytest's importlib mode, harmless under the others.
HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)
