"""Whole models from PyTorch: `torch.compile(model, backend="alcop")`, and `export`.

The one room that imports torch and torch-mlir's importer; all else does without. See
docs/torch.md.
"""

from __future__ import annotations

from alcop_mlir.errors import optional

optional("torch", "alcop_mlir.torch needs PyTorch", "torch")
optional("torch_mlir.fx", "alcop_mlir.torch needs torch-mlir", "torch")

from alcop_mlir.torch.backend import alcop as alcop  # noqa: E402
from alcop_mlir.torch.export import Exported as Exported  # noqa: E402
from alcop_mlir.torch.export import export as export  # noqa: E402
