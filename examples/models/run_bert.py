"""A BERT layer by torch.compile: on the GPU where torch has one, else on the emulator.

python examples/models/run_bert.py
"""

import time

import torch
from bert import BertLayer

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
layer = BertLayer(width=64, heads=2, hidden=128).half().eval().to(device)
compiled = torch.compile(layer, backend="alcop")
x = torch.randn(2, 32, 64, dtype=torch.float16, device=device)

with torch.no_grad():
    begin = time.perf_counter()
    y = compiled(x)
    seconds = time.perf_counter() - begin
    wanted = layer.cpu().double()(x.cpu().double())
error = (y.cpu().double() - wanted).abs().max().item()
print(f"BERT layer {tuple(x.shape)} in f16, compiled and run in {seconds:.1f} s")
print(f"largest difference from torch in f64: {error:.1e}")
