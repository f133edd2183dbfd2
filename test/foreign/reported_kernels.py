"""Kernels that users of other compilers reported, as small as they go.

All but one have a block of 64 threads, and take A: 256x64xf32, C: 64x64xf32, n: index.
"""

from __future__ import annotations

THREADS = 64
ROWS = 256
SHARED = "memref<64xf32, #gpu.address_space<workgroup>>"
WIDE = "memref<16x4xf32, #gpu.address_space<workgroup>>"
GROUP = '"nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token'


def kernel(body: str, buffers: str = "%a : SHARED, %b : SHARED") -> str:
    """A module with one kernel; SHARED and GROUP are spelled out."""
    text = f"""
module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
gpu.func @kernel(%A: memref<{ROWS}x64xf32>, %C: memref<64x64xf32>, %n: index)
    workgroup({buffers})
    kernel attributes {{known_block_size = array<i32: {THREADS}, 1, 1>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
{body}
  gpu.return
}}
}}
}}
"""
    for name, spelled in (("SHARED", SHARED), ("WIDE", WIDE), ("GROUP", GROUP)):
        text = text.replace(name, spelled)
    return text


def loop(copies: str, reads: str, upper: str = "%n", result: str = "%sum") -> str:
    """Copies, barrier, reads of %acc into %next, barrier; then the sum is stored."""
    return f"""
  %sum = scf.for %k = %c0 to {upper} step %c1 iter_args(%acc = %zero) -> (f32) {{
{copies}
    gpu.barrier
{reads}
    gpu.barrier
    scf.yield %next : f32
  }}
  memref.store {result}, %C[%c0, %t] : memref<64x64xf32>"""


COPY = """
    %v = memref.load %A[%k, %t] : memref<256x64xf32>
    memref.store %v, %a[%t] : SHARED"""
READ = """
    %x = memref.load %a[%other] : SHARED
    %next = arith.addf %acc, %x : f32"""

PLAIN = kernel(loop(COPY, READ))

# IREE #13451, #13718: the buffer cannot be given slots, as it is read after the loop.
READ_AFTER_THE_LOOP = kernel(
    loop(COPY, READ, result="%total").replace(
        "  memref.store %total",
        """  gpu.barrier
  %last = memref.load %a[%other] : SHARED
  %total = arith.addf %sum, %last : f32
  memref.store %total""",
    )
)

# The same: its address leaves to an op that nothing is known of.
ESCAPES = kernel(
    """
  %raw = memref.extract_aligned_pointer_as_index %a : SHARED -> index
  %where = arith.remui %raw, %c1 : index"""
    + loop(COPY, READ)
)

# llvm #62885, #176941; IREE #23919: views of the buffer were hoisted out of the loop.
_FLAT = "memref<64xf32, strided<[1], offset: 64>, #gpu.address_space<workgroup>>"
HOISTED_VIEWS = {
    "subview": kernel(
        f"""
  %v0 = memref.subview %a[64] [64] [1] : memref<128xf32, WS> to {_FLAT}"""
        + loop(COPY, READ).replace("%a[", "%v0[").replace("SHARED", _FLAT),
        "%a : memref<128xf32, WS>",
    ),
    "expand_shape": kernel(
        """
  %v0 = memref.expand_shape %a [[0, 1]] output_shape [16, 4] : SHARED into WIDE
  %row = arith.divui %other, %c4 : index
  %column = arith.remui %other, %c4 : index"""
        + loop(
            COPY,
            READ.replace("%a[%other] : SHARED", "%v0[%row, %column] : WIDE"),
        ),
        "%a : SHARED",
    ),
    "collapse_shape": kernel(
        """
  %v0 = memref.collapse_shape %a [[0, 1]] : WIDE into SHARED"""
        + loop(COPY, READ).replace("%a[", "%v0["),
        "%a : WIDE",
    ),
    "cast": kernel(
        """
  %v0 = memref.cast %a : SHARED to memref<?xf32, WS>"""
        + loop(
            COPY, READ.replace("%a[%other] : SHARED", "%v0[%other] : memref<?xf32, WS>")
        ),
        "%a : SHARED",
    ),
}
HOISTED_VIEWS = {
    name: text.replace("WS>", "#gpu.address_space<workgroup>>")
    for name, text in HOISTED_VIEWS.items()
}

# Triton #6691, #8139: what is first in the body, the load or the use?
USE_FIRST = kernel(
    """
  %v0 = memref.load %A[%c0, %t] : memref<256x64xf32>
  memref.store %v0, %a[%t] : SHARED
  gpu.barrier"""
    + loop(READ, COPY.replace("%k,", "%k1,")).replace(
        "    %v =", "    %k1 = arith.addi %k, %c1 : index\n    %v ="
    )
)

# TileLang #2668: read, then overwritten in the same iteration.
READ_THEN_OVERWRITTEN = kernel(
    loop(
        COPY,
        """
    %x = memref.load %a[%other] : SHARED
    gpu.barrier
    %half = arith.mulf %x, %x : f32
    memref.store %half, %a[%t] : SHARED
    gpu.barrier
    %y = memref.load %a[%other] : SHARED
    %next = arith.addf %acc, %y : f32""",
    )
)

# TileLang #1937, TVM #19741: a copy under a condition, without and with a zero fill.
_GUARD = """
    %row = arith.addi %k, %t : index
    %few = arith.cmpi ult, %row, %c63 : index
    scf.if %few {
      %v = memref.load %A[%k, %t] : memref<256x64xf32>
      memref.store %v, %a[%t] : SHARED
    }"""
GUARDED_WITHOUT_FILL = kernel(
    "  memref.store %zero, %a[%t] : SHARED\n  gpu.barrier" + loop(_GUARD, READ)
)
GUARDED_WITH_FILL = kernel(
    loop(_GUARD + " else {\n      memref.store %zero, %a[%t] : SHARED\n    }", READ)
)

# The same, where the condition chooses what is stored.
CHOSEN = kernel(
    loop(
        """
    %row = arith.addi %k, %t : index
    %few = arith.cmpi ult, %row, %c63 : index
    %v = scf.if %few -> (f32) {
      %back = arith.subi %c63, %k : index
      %l = memref.load %A[%back, %t] : memref<256x64xf32>
      scf.yield %l : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %v, %a[%t] : SHARED""",
        READ,
    )
)
# Two copies under one condition, as canonicalize makes it of two.
MERGED = kernel(
    loop(
        """
    %row = arith.addi %k, %t : index
    %few = arith.cmpi ult, %row, %c63 : index
    scf.if %few {
      %back = arith.subi %c63, %k : index
      %v = memref.load %A[%back, %t] : memref<256x64xf32>
      memref.store %v, %a[%t] : SHARED
      %w = memref.load %A[%back, %other] : memref<256x64xf32>
      memref.store %w, %b[%t] : SHARED
    } else {
      memref.store %zero, %a[%t] : SHARED
      memref.store %zero, %b[%t] : SHARED
    }""",
        """
    %x = memref.load %a[%other] : SHARED
    %y = memref.load %b[%other] : SHARED
    %m = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %m : f32""",
    )
)

# One condition for what two stores store.
CHOSEN_BOTH = kernel(
    loop(
        """
    %row = arith.addi %k, %t : index
    %few = arith.cmpi ult, %row, %c63 : index
    %v:2 = scf.if %few -> (f32, f32) {
      %l = memref.load %A[%k, %t] : memref<256x64xf32>
      %m = memref.load %A[%k, %other] : memref<256x64xf32>
      scf.yield %l, %m : f32, f32
    } else {
      scf.yield %zero, %zero : f32, f32
    }
    memref.store %v#0, %a[%t] : SHARED
    memref.store %v#1, %b[%t] : SHARED""",
        """
    %x = memref.load %a[%other] : SHARED
    %y = memref.load %b[%other] : SHARED
    %p = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %p : f32""",
    )
)

# TileLang #2505: two commit groups in each iteration, waited for by number.
_ASYNC = """
    %ca = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : memref<256x64xf32> to SHARED
    %ga = GROUP
    %k1 = arith.addi %k, %c1 : index
    %cb = nvgpu.device_async_copy %A[%k1, %t], %b[%t], 1 : memref<256x64xf32> to SHARED
    %gb = GROUP
    nvgpu.device_async_wait %gb {numGroups = 0 : i32}"""
_READ_BOTH = """
    %x = memref.load %a[%other] : SHARED
    %y = memref.load %b[%other] : SHARED
    %m = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %m : f32"""
TWO_GROUPS = kernel(loop(_ASYNC, _READ_BOTH))
# ... and waited for one by one, each with a barrier of its own (IREE #13859).
TWO_WAITS = kernel(
    loop(
        _ASYNC.replace(
            "nvgpu.device_async_wait %gb {numGroups = 0 : i32}",
            "nvgpu.device_async_wait %ga {numGroups = 1 : i32}\n    gpu.barrier\n"
            "    nvgpu.device_async_wait %gb {numGroups = 0 : i32}",
        ),
        _READ_BOTH,
    )
)

# TVM #19742: the fragment loads of a buffer with slots must move with it.
_MATRIX = "memref<16x16xf16, #gpu.address_space<workgroup>>"
LDMATRIX = f"""
module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
gpu.func @kernel(%A: memref<256x16xf16>, %C: memref<32x8xf16>, %n: index)
    workgroup(%a : {_MATRIX})
    kernel attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<4x2xf16>
  %t = gpu.thread_id x
  %row = arith.divui %t, %c2 : index
  %odd = arith.remui %t, %c2 : index
  %column = arith.muli %odd, %c8 : index
  %mrow = arith.remui %t, %c16 : index
  %mhalf = arith.divui %t, %c16 : index
  %mcolumn = arith.muli %mhalf, %c8 : index
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero)
      -> (vector<4x2xf16>) {{
    %from = arith.addi %k, %row : index
    %v = vector.load %A[%from, %column] : memref<256x16xf16>, vector<8xf16>
    vector.store %v, %a[%row, %column] : {_MATRIX}, vector<8xf16>
    gpu.barrier
    %x = nvgpu.ldmatrix %a[%mrow, %mcolumn] {{numTiles = 4 : i32, transpose = false}}
        : {_MATRIX} -> vector<4x2xf16>
    %next = arith.addf %acc, %x : vector<4x2xf16>
    gpu.barrier
    scf.yield %next : vector<4x2xf16>
  }}
  %flat = vector.shape_cast %sum : vector<4x2xf16> to vector<8xf16>
  vector.store %flat, %C[%t, %c0] : memref<32x8xf16>, vector<8xf16>
  gpu.return
}}
}}
}}
"""
