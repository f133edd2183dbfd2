"""The first target that has an instruction, where it is later than sm_80.

PTX ISA, "Target ISA Notes" of each instruction; a test asks ptxas. What a single target
has, as `wgmma` does, is in its row of the table.
"""

from __future__ import annotations

from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Name, PtxKernel

FIRST = 80
_SIGNED_MAXIMUM, _FP8, _HOPPER, _BLACKWELL = 86, 89, 90, 100
_EIGHT_BITS = {"e4m3", "e5m2", "e4m3x2", "e5m2x2"}
# Opcodes that are new as a whole, and what is new wherever it stands.
_NEW_NAMES = {"elect", "griddepcontrol", "getctarank", "mapa", "stmatrix", "tensormap"}
_NEW_WORDS = {"bulk", "tensormap", "tensormap::generic", "mbarrier_init"}
# New modifiers of older opcodes; "bf16" is any of its types.
_WITH_BF16 = ("add", "sub", "mul", "set", "setp", "tanh", "ex2")
_NEW_FORMS = {
    "mbarrier": {"expect_tx", "complete_tx", "try_wait", "relaxed"},
    "fence": {"async", "async::generic", "acquire", "release"},
    "st": {"async"},
    "red": {"async", "bf16", "v2", "v4", "v8"},
    "atom": {"b128", "bf16", "v2", "v4", "v8"},
    **dict.fromkeys(_WITH_BF16, frozenset({"bf16"})),
    **dict.fromkeys(("min", "max"), frozenset({"relu", "u16x2", "s16x2"})),
    "add": {"bf16", "u16x2", "s16x2"},
    "fma": {"oob"},
}
_NEW_REGISTERS = (
    *("%clusterid", "%nclusterid", "%cluster_", "%is_explicit_cluster"),
    "%aggr_smem_size",
)


def first_target(ins: Instruction) -> int:
    """The compute capability of the first target that has it, as 80 for sm_80."""
    name, *rest = ins.parts
    words = {"bf16" if part == "bf16x2" else part for part in rest}
    if name in ("min", "max") and len(ins.operands) > 3:
        return _BLACKWELL
    if name in _NEW_NAMES or words & _NEW_WORDS or words & _NEW_FORMS.get(name, set()):
        return _HOPPER
    if name == "mma" and "f64" in words and "m8n8k4" not in words:
        return _HOPPER
    if any("cluster" in part.split("::") for part in rest):
        return _HOPPER
    if name == "cvt" and _is_new_conversion(rest):
        return _HOPPER
    if any(_is_new_register(operand) for operand in ins.operands):
        return _HOPPER
    if words & _EIGHT_BITS:
        return _FP8
    return _SIGNED_MAXIMUM if "xorsign" in words else FIRST


def first_target_of(kernel: PtxKernel) -> int:
    """That of what the entry asks for before its body: only clusters are newer."""
    asks = kernel.required_cluster is not None or kernel.max_cluster is not None
    return _HOPPER if asks or kernel.needs_cluster else FIRST


def _is_new_conversion(parts: list[str]) -> bool:
    """To and from bf16 and tf32: older targets have those with f32 alone."""
    to, of = parts[-2:] if len(parts) > 1 else ("", "")
    if "tf32" in parts:
        return "rna" not in parts
    if of.startswith("bf16"):
        return to != "f32"
    return to.startswith("bf16") and of != "f32"


def _is_new_register(operand: object) -> bool:
    return isinstance(operand, Name) and operand.name.startswith(_NEW_REGISTERS)
