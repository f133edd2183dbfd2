"""PTX of small kernels by Triton, as JSON. Runs where Triton is installed.

    python bench/findings/triton_kernels.py CAPABILITY          # 80 or 90

No GPU is needed. `bench_findings.py` runs it, by the Python of such an environment.
"""

import json
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, n, N: tl.constexpr):
    """A row of n by a block."""
    r = tl.program_id(0)
    c = tl.arange(0, N)
    v = tl.load(x + r * n + c, mask=c < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + r * n + c, e / tl.sum(e, 0), mask=c < n)


@triton.jit
def layer_norm(x, w, y, n, N: tl.constexpr):
    """A row of n by a block, without a shift."""
    r = tl.program_id(0)
    c = tl.arange(0, N)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    m = tl.sum(v, 0) / n
    d = tl.where(c < n, v - m, 0.0)
    s = tl.sum(d * d, 0) / n
    tl.store(
        y + r * n + c,
        d / tl.sqrt(s + 1e-5) * tl.load(w + c, mask=c < n, other=0.0),
        mask=c < n,
    )


@triton.jit
def matmul(
    a,
    b,
    c,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    S: tl.constexpr,
):
    """Tiles of any M, N, K, in S stages."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in tl.range(0, tl.cdiv(K, BK), num_stages=S):
        kk = i * BK + k
        x = tl.load(
            a + m[:, None] * K + kk[None, :],
            mask=(m[:, None] < M) & (kk[None, :] < K),
            other=0.0,
        )
        z = tl.load(
            b + kk[:, None] * N + n[None, :],
            mask=(kk[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        acc = tl.dot(x, z, acc)
    tl.store(
        c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N)
    )


@triton.jit
def int8_dot(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One tile, K a multiple of BK."""
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32)
    for i in tl.range(0, K, BK, num_stages=3):
        acc = tl.dot(
            tl.load(a + m[:, None] * K + i + k[None, :]),
            tl.load(b + (i + k)[:, None] * BN + n[None, :]),
            acc,
        )
    tl.store(c + m[:, None] * BN + n[None, :], acc)


@triton.jit
def attention(q, k, v, o, T, scale, BT: tl.constexpr, D: tl.constexpr):
    """Rows of one head, T a multiple of BT."""
    d = tl.arange(0, D)
    r = tl.program_id(0) * BT + tl.arange(0, BT)
    qq = tl.load(q + r[:, None] * D + d[None, :])
    m = tl.full((BT,), -float("inf"), tl.float32)
    total = tl.zeros((BT,), tl.float32)
    acc = tl.zeros((BT, D), tl.float32)
    for j in tl.range(0, T, BT, num_stages=2):
        t = j + tl.arange(0, BT)
        s = tl.dot(qq, tl.load(k + t[None, :] * D + d[:, None])) * scale
        mm = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - mm[:, None])
        f = tl.exp(m - mm)
        total = total * f + tl.sum(p, 1)
        acc = tl.dot(
            p.to(tl.float16), tl.load(v + t[:, None] * D + d[None, :]), acc * f[:, None]
        )
        m = mm
    tl.store(o + r[:, None] * D + d[None, :], acc / total[:, None])


@triton.jit
def histogram(x, h, n, N: tl.constexpr):
    """Numbers below the size of h."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(h + v, 1, mask=i < n)


@triton.jit
def scan(x, y, N: tl.constexpr):
    """Running totals."""
    i = tl.arange(0, N)
    tl.store(y + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit
def sort(x, y, N: tl.constexpr):
    """Ascending."""
    i = tl.arange(0, N)
    tl.store(y + i, tl.sort(tl.load(x + i)))


@triton.jit
def argmax(x, y, n, N: tl.constexpr):
    """Of a row by a block."""
    r = tl.program_id(0)
    c = tl.arange(0, N)
    tl.store(
        y + r, tl.argmax(tl.load(x + r * n + c, mask=c < n, other=-float("inf")), 0)
    )


@triton.jit
def gather(x, ix, y, N: tl.constexpr):
    """x at indices."""
    i = tl.arange(0, N)
    tl.store(y + i, tl.gather(tl.load(x + i), tl.load(ix + i), 0))


@triton.jit
def transpose(x, y, N: tl.constexpr):
    """One tile."""
    i = tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + i[None, :])
    tl.store(y + i[:, None] * N + i[None, :], tl.trans(v))


@triton.jit
def to_f8(x, y, N: tl.constexpr):
    """To e5m2 and back."""
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i).to(tl.float8e5).to(tl.float32))


@triton.jit
def persistent(a, b, c, T, K, P, BM: tl.constexpr, BK: tl.constexpr):
    """T tiles of rows by P blocks."""
    k = tl.arange(0, BK)
    n = tl.arange(0, BM)
    for t in range(tl.program_id(0), T, P):
        m = t * BM + tl.arange(0, BM)
        acc = tl.zeros((BM, BM), tl.float32)
        for i in tl.range(0, K, BK, num_stages=3):
            acc = tl.dot(
                tl.load(a + m[:, None] * K + i + k[None, :]),
                tl.load(b + (i + k)[:, None] * BM + n[None, :]),
                acc,
            )
        tl.store(c + m[:, None] * BM + n[None, :], acc)


F, H, W, B, N = "*fp32", "*fp16", "*i32", "*i8", "i32"
# Kernels, types of their arguments, and constants. Pointers and numbers of those in
# ALIGNED are multiples of 16.
CASES = [
    ("softmax", softmax, (F, F, N), {"N": 512}),
    ("layer_norm", layer_norm, (F, F, F, N), {"N": 512}),
    *(
        (
            f"matmul{s}",
            matmul,
            (H, H, F, N, N, N),
            {"BM": 64, "BN": 64, "BK": 32, "S": s},
        )
        for s in (1, 2, 3, 4)
    ),
    ("int8_dot", int8_dot, (B, B, W, N), {"BM": 64, "BN": 64, "BK": 64}),
    ("attention", attention, (H, H, H, F, N, "fp32"), {"BT": 64, "D": 64}),
    ("histogram", histogram, (W, W, N), {"N": 256}),
    ("scan", scan, (W, W), {"N": 1024}),
    ("sort", sort, (F, F), {"N": 256}),
    ("argmax", argmax, (F, W, N), {"N": 512}),
    ("gather", gather, (F, W, F), {"N": 256}),
    ("transpose", transpose, (F, F), {"N": 64}),
    ("to_f8", to_f8, (F, F), {"N": 256}),
    ("persistent", persistent, (H, H, F, N, N, N), {"BM": 64, "BK": 32}),
]
ALIGNED = (
    "int8_dot",
    "attention",
    "persistent",
    "matmul1",
    "matmul2",
    "matmul3",
    "matmul4",
)


def compiled(name, kernel, types, constants, capability):
    """The kernel's record: how it is launched, and its PTX."""
    names = kernel.arg_names
    kinds = dict(zip(names, types, strict=False))
    kinds.update(dict.fromkeys(constants, "constexpr"))
    aligned = [
        number
        for number, kind in enumerate(types)
        if kind.startswith("*") or (kind == N and name in ALIGNED)
    ]
    attributes = {(number,): [["tt.divisibility", 16]] for number in aligned}
    source = ASTSource(kernel, kinds, constants, attributes)
    made = triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4}
    )
    return {
        "name": name,
        "entry": made.metadata.name,
        "threads": 32 * made.metadata.num_warps,
        "shared": made.metadata.shared,
        "ptx": made.asm["ptx"],
    }


def main(capability):
    """Of each kernel its name, entry, threads, shared memory and PTX."""
    kernels = [compiled(*case, capability) for case in CASES]
    compiler = f"Triton {triton.__version__}, sm_{capability}"
    print(json.dumps({"compiler": compiler, "kernels": kernels}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
