"""Let a Llama of random weights write: python examples/models/generate.py"""

from collections.abc import Callable

import torch
from llama import Llama

from alcop_mlir.torch import alcop

PROMPT, LONGEST = (3, 14, 15, 9, 26), 16


def generate(model: Llama, run: Callable[..., torch.Tensor], count: int) -> list[int]:
    """The prompt and `count` tokens more, of `model` as `run` runs it."""
    tokens, caches = torch.tensor([PROMPT]), model.caches(1, LONGEST)
    scores = run(tokens, torch.arange(len(PROMPT)), caches)
    for place in range(len(PROMPT), len(PROMPT) + count):
        tokens = torch.cat((tokens, scores.argmax(-1, keepdim=True)), 1)
        scores = run(tokens[:, -1:], torch.tensor([place]), caches)
    return tokens[0].tolist()


torch.manual_seed(1)
model = Llama(1, width=32, heads=2, groups=1, hidden=64, vocabulary=64).half().eval()
if __name__ == "__main__":
    with torch.no_grad():
        print(*generate(model, torch.compile(model, backend=alcop), count=8))
