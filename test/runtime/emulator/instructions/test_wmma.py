"""wmma: a matmul of matrices in memory. Its fragments are left open by the PTX ISA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from kernel_text import run_kernel
from warp_multiply import packed

from alcop_mlir.errors import EmulationError

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4}
BITS |= {"b1": 1, "f64": 64, "f32": 32, "s32": 32}
WIDE = ("m16n16k16", "m8n32k16", "m32n8k16")


@dataclass(frozen=True)
class Form:
    """A shape with its types, and how many registers the operands have."""

    shape: str
    kind: str
    d: str
    c: str
    registers: tuple[int, int, int, int]  # of D, A, B and C
    end: str = ""

    @property
    def sizes(self) -> tuple[int, int, int]:
        m, rest = self.shape[1:].split("n")
        n, k = rest.split("k")
        return int(m), int(n), int(k)

    @property
    def opcode(self) -> str:
        if self.kind == "f16":
            return f"{self.shape}.{self.d}.{self.c}{self.end}"
        end = self.end if self.end == ".satfinite" else ""
        return f"{self.shape}.{self.d}.{self.kind}.{self.kind}.{self.c}{end}"


def forms() -> list[Form]:
    found = []
    byte = {"m16n16k16": (2, 2), "m8n32k16": (1, 4), "m32n8k16": (4, 1)}
    for shape in WIDE:
        for d in ("f16", "f32"):
            for c in ("f16", "f32"):
                counts = (4 if d == "f16" else 8, 8, 8, 4 if c == "f16" else 8)
                found.append(Form(shape, "f16", d, c, counts))
        a, b = byte[shape]
        found.append(Form(shape, "s8", "s32", "s32", (8, a, b, 8)))
        found.append(Form(shape, "u8", "s32", "s32", (8, a, b, 8), ".satfinite"))
        found.append(Form(shape, "bf16", "f32", "f32", (8, 2 * a, 2 * b, 8)))
    found.append(Form("m16n16k8", "tf32", "f32", "f32", (8, 4, 4, 8)))
    found.append(Form("m8n8k4", "f64", "f64", "f64", (2, 1, 1, 2)))
    found.append(Form("m8n8k32", "s4", "s32", "s32", (2, 1, 1, 2)))
    found.append(Form("m8n8k32", "u4", "s32", "s32", (2, 1, 1, 2), ".satfinite"))
    found.append(Form("m8n8k128", "b1", "s32", "s32", (2, 1, 1, 2), ".xor"))
    found.append(Form("m8n8k128", "b1", "s32", "s32", (2, 1, 1, 2), ".and"))
    return found


def numbers(
    generator: np.random.Generator, kind: str, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers of a type, and their bits."""
    if kind == "b1":
        value = generator.integers(0, 2, shape)
    elif kind in ("u4", "u8"):
        value = generator.integers(0, 2 ** BITS[kind], shape)
    else:
        value = generator.integers(-8, 8, shape)
    if kind == "f16":
        return value, value.astype(np.float16).view(np.uint16)
    if kind == "f64":
        return value, value.astype(np.float64).view(np.uint64)
    if kind in ("bf16", "tf32", "f32"):
        bits = value.astype(np.float32).view(np.uint32)
        return value, bits >> 16 if kind == "bf16" else bits
    return value, value & ((1 << BITS[kind]) - 1)


def stored(bits: np.ndarray, kind: str, layout: str, pitch: int) -> np.ndarray:
    """The bytes of a matrix in memory, with `pitch` elements to a row (column)."""
    lines = bits if layout == "row" else bits.T
    padded = np.zeros((lines.shape[0], pitch), np.uint64)
    padded[:, : lines.shape[1]] = lines
    if BITS[kind] == 64:
        return padded.view(np.uint8).reshape(-1)
    return np.array(packed(padded.reshape(-1).tolist(), BITS[kind]), np.uint32).view(
        np.uint8
    )


def vector(name: str, count: int) -> str:
    return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"


def run_form(
    form: Form,
    layouts: tuple[str, str, str, str],
    space: str,
    strided: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """D as it was stored (as bytes), and the exact matmul."""
    generator = np.random.default_rng(sum(map(ord, form.opcode)))
    m, n, k = form.sizes
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    kinds = {"a": form.kind, "b": form.kind, "c": form.c}
    values, memory, pitches = {}, [], {}
    for (name, shape), layout in zip(shapes.items(), layouts[1:], strict=True):
        values[name], bits = numbers(generator, kinds[name], shape)
        tight = shape[1] if layout == "row" else shape[0]
        pitches[name] = tight + (128 // BITS[kinds[name]] if strided else 0)
        memory.append(stored(bits, kinds[name], layout, pitches[name]))
    pitches["d"] = n if layouts[0] == "row" else m
    out = np.zeros(m * n * BITS[form.d] // 8, np.uint8)
    size = 64 if form.kind == "f64" else 32
    body = ".reg .b64 %p, %q; .reg .b32 %s;\n"
    d_count, *counts = form.registers
    for name, count in zip("dabc", form.registers, strict=True):
        body += f".reg .b{size} %{name}<{count}>;\n"
    for place, (name, count, layout) in enumerate(
        zip("abc", counts, layouts[1:], strict=True)
    ):
        body += f"ld.param.u64 %p, [p{place}];\nmov.u32 %s, {pitches[name]};\n"
        body += into_shared(memory[place].size) if space == ".shared" else ""
        opcode = f"wmma.load.{name}.sync.aligned.{layout}.{form.shape}{space}"
        stride = ", %s" if strided else ""
        body += f"{opcode}.{kinds[name]} {vector(name, count)}, [%p]{stride};\n"
    lists = ", ".join(vector(n, c) for n, c in zip("dabc", form.registers, strict=True))
    operation = f"{form.end}.popc" if form.kind == "b1" else ""
    given = f"sync.aligned.{layouts[1]}.{layouts[2]}.{form.opcode}"
    body += f"wmma.mma{operation}.{given} {lists};\n"
    body += f"ld.param.u64 %p, [p3];\nmov.u32 %s, {pitches['d']};\n"
    opcode = f"wmma.store.d.sync.aligned.{layouts[0]}.{form.shape}.global.{form.d}"
    body += f"{opcode} [%p], {vector('d', d_count)}, %s;\n"
    before = ".shared .align 16 .b8 tile[16384];"
    result = run_kernel(body, ["u64"] * 4, [*memory, out], before=before, version="8.0")
    assert result.hazards == ()
    a, b, c = values["a"], values["b"], values["c"]
    if form.end == ".xor":
        return out, (a[:, :, None] != b[None]).sum(axis=1) + c
    return out, a @ b + c


def into_shared(size: int) -> str:
    """Lane 0 copies global memory at %p to shared memory; %p is its address."""
    lines = ".reg .b32 %w; .reg .pred %e; .reg .b64 %t; .reg .b32 %l;\n"
    lines += "mov.u32 %l, %laneid; setp.eq.u32 %e, %l, 0; mov.u64 %t, tile;\n"
    lines += "bar.sync 0;\n"
    for at in range(0, size, 4):
        lines += f"@%e ld.global.b32 %w, [%p+{at}]; @%e st.shared.b32 [%t+{at}], %w;\n"
    return "{\n" + lines + "mov.u64 %p, %t; bar.sync 0;\n}\n"


def matrix_of(out: np.ndarray, form: Form, layout: str) -> np.ndarray:
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32}
    m, n, _ = form.sizes
    lines = out.view(dtype[form.d])
    return lines.reshape(m, n) if layout == "row" else lines.reshape(n, m).T


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("form", forms(), ids=lambda form: form.opcode + form.end)
def test_product(form: Form, strided: bool) -> None:
    narrow = BITS[form.kind] < 8
    every = ("row", "col")
    for number in range(2 if narrow else 4):
        a, b = ("row", "col") if narrow else (every[number % 2], every[number // 2])
        layouts = (every[number % 2], a, b, every[1 - number % 2])
        out, exact = run_form(form, layouts, (".global", "")[number % 2], strided)
        np.testing.assert_array_equal(matrix_of(out, form, layouts[0]), exact)


@pytest.mark.parametrize("kind", ["f16", "s8", "b1"])
def test_from_shared_memory(kind: str) -> None:
    form = next(form for form in forms() if form.kind == kind)
    layouts = ("row", "row", "col", "col")
    out, exact = run_form(form, layouts, ".shared", True)
    np.testing.assert_array_equal(matrix_of(out, form, "row"), exact)


def test_a_load_reads_what_other_lanes_wrote() -> None:
    """No order between the lanes that store and the warp that loads."""
    body = """
    .reg .b32 %l, %x, %a<8>; .reg .b64 %t, %s;
    mov.u32 %l, %laneid; mov.u64 %s, tile; mad.wide.u32 %t, %l, 16, %s;
    mov.u32 %x, 0; st.shared.v4.b32 [%t], {%x, %x, %x, %x};
    BARRIER
    wmma.load.a.sync.aligned.row.m16n16k16.shared.f16
      {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%s];
    bar.warp.sync 0xffffffff;
    """
    before = ".shared .align 16 .b8 tile[512];"
    for barrier, kinds in (("bar.warp.sync 0xffffffff;", set()), ("", {"read"})):
        text = body.replace("BARRIER", barrier)
        hazards = run_kernel(text, [], [], before=before).hazards
        assert {hazard.kind.split("-")[0] for hazard in hazards} == kinds


def test_a_fragment_of_the_wrong_size() -> None:
    body = """
    .reg .b32 %a<4>; .reg .b64 %s; mov.u64 %s, 0;
    wmma.load.a.sync.aligned.row.m16n16k16.f16 {%a0, %a1, %a2}, [%s];
    """
    with pytest.raises(EmulationError, match=r"line 10.*a fragment of 3 registers"):
        run_kernel(body, [], [])
