"""Compile a model of torch's ahead of time: the kernels, and the weights beside them.

python examples/models/export_torch.py FOLDER
python examples/models/run_exported.py FOLDER   # without torch and MLIR
"""

import sys

import torch
from mlp import Mlp

from alcop_mlir.torch import export

torch.manual_seed(0)
model = Mlp((64, 128, 32)).half().eval()
rows = torch.export.Dim("rows")
x = torch.randn(32, 64, dtype=torch.float16)
exported = export(model, (x,), dynamic_shapes={"x": {0: rows}})
exported.save(sys.argv[1])
print(exported.program, "in", sys.argv[1])
