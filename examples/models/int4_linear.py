"""Weights of four bits, two in a byte, with a scale per group: an int4 Linear.

python examples/models/int4_linear.py   # on the emulator

The kernel copies the packed bytes, a quarter of what f16 weights are, and makes f16 of
them in registers, between `ldmatrix` and `mma.sync`.
"""

import torch
from torch import Tensor, nn

from alcop_mlir.torch import alcop

GROUP = 32  # neighbours along K with one scale


class Int4Linear(nn.Module):
    """A Linear without bias, rounded to 16 codes: q times the scale of its group."""

    packed: Tensor
    scales: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        groups = linear.weight.detach().float().unflatten(1, (-1, GROUP))
        scales = (groups.abs().amax(2) / 7).clamp(min=1e-6).half()
        q = (groups / scales[:, :, None]).round().clamp(-8, 7).flatten(1).to(torch.int8)
        self.register_buffer("packed", (q[:, ::2] & 15) | (q[:, 1::2] << 4))
        self.register_buffer("scales", scales)

    def forward(self, x: Tensor) -> Tensor:
        low, high = self.packed << 4 >> 4, self.packed >> 4  # with their signs
        q = torch.stack((low, high), -1).flatten(1).unflatten(1, (-1, GROUP))
        weight = (q.to(x.dtype) * self.scales[:, :, None]).flatten(1)
        return nn.functional.linear(x, weight)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Int4Linear(nn.Linear(256, 128, bias=False)).eval()
    x = torch.randn(16, 256, dtype=torch.float16)
    compiled = torch.compile(model, backend=alcop, fullgraph=True)
    with torch.no_grad():
        difference = (compiled(x) - model(x)).abs().max().item()
    print(f"largest difference from eager: {difference:.1e}")
