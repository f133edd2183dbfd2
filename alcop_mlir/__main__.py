"""`python -m alcop_mlir`: the tools, where their commands are not on PATH."""

from __future__ import annotations

import sys

from alcop_mlir.tools.every_tool import main

sys.exit(main())
