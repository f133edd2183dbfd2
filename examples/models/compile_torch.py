"""A model of torch's, compiled by one line: python examples/models/compile_torch.py"""

import torch

model = torch.nn.Sequential(
    torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32)
)
compiled = torch.compile(model.half().eval(), backend="alcop")
x = torch.randn(32, 64, dtype=torch.float16)
with torch.no_grad():
    print("largest difference:", (compiled(x) - model(x)).abs().max().item())
