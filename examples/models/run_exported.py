"""Run what export_torch.py wrote, where NumPy and safetensors are installed only.

python examples/models/run_exported.py FOLDER
"""

import sys

import numpy as np
from safetensors.numpy import load_file

import alcop_mlir

program = alcop_mlir.load(f"{sys.argv[1]}/program.zip")
weights = load_file(f"{sys.argv[1]}/weights.safetensors")
x = np.random.default_rng(0).standard_normal((40, 64)).astype(np.float16)
prepared = program.prepare(**weights)  # once, for all calls with these weights
y = program(x=x, **weights, prepared=prepared)

hidden = np.maximum(x @ weights["layers.0.weight"].T + weights["layers.0.bias"], 0)
wanted = hidden @ weights["layers.1.weight"].T + weights["layers.1.bias"]
print("largest difference from NumPy:", np.abs(y - wanted).max())
