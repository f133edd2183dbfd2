"""Compile a matmul from Python, call it, and store it.

    python examples/from_python.py

NumPy arrays run on the emulator; CuPy arrays, or any in GPU memory, run on the GPU.
"""

import numpy as np

import alcop_mlir

M, N, K = 128, 128, 256

matmul = alcop_mlir.compile(
    f"""
    func.func @matmul(%A: memref<{M}x{K}xf16>, %B: memref<{K}x{N}xf16>,
                      %C: memref<{M}x{N}xf32>) {{
      %zero = arith.constant 0.0 : f32
      linalg.fill ins(%zero : f32) outs(%C : memref<{M}x{N}xf32>)
      linalg.matmul ins(%A, %B : memref<{M}x{K}xf16>, memref<{K}x{N}xf16>)
                    outs(%C : memref<{M}x{N}xf32>)
      return
    }}
    """,
    target="sm_80",
    schedule="block=64,64,32 warp=32,32 stages=3,2",
)

random = np.random.default_rng(0)
A = random.uniform(-1, 1, (M, K)).astype(np.float16)
B = random.uniform(-1, 1, (K, N)).astype(np.float16)
C = np.empty((M, N), np.float32)
matmul(A, B, C)

print(matmul)
print(
    "largest difference from NumPy:", np.abs(C - A.astype("f4") @ B.astype("f4")).max()
)

# To keep it: matmul.save("matmul.zip"); elsewhere: alcop_mlir.load("matmul.zip").
