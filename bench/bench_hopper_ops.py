"""Which ops of Hopper go through MLIR, LLVM and ptxas as they are installed. No GPU.

usage: python bench/bench_hopper_ops.py [--json]

Each op of `hopper_ops.py` is a kernel, converted by upstream's passes, translated to
LLVM IR, compiled by llvmlite's LLVM, which is older than that of MLIR's bindings, and
assembled, where there is a ptxas. Each is a process of its own, as LLVM ends the
process at what it does not know. Prints the table of docs/upstream.md; the exit status
is 1 where an op does something else than its row says.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hopper_ops import ABORT, OPS, REFUSED, UNKNOWN, YES, Op

from alcop_mlir.bindings import ir, passmanager, translate_to_llvm_ir
from alcop_mlir.errors import CompileError
from alcop_mlir.runtime import llvm_text, nvptx, ptx
from alcop_mlir.target import find_target

SECONDS = 60
_TRIPLE = "nvptx64-nvidia-cuda"
_CONVERSIONS = (
    "convert-nvgpu-to-nvvm,convert-vector-to-scf,convert-scf-to-cf,"
    "expand-strided-metadata,lower-affine,arith-expand,"
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=true index-bitwidth=64},"
    "convert-vector-to-llvm,convert-nvvm-to-llvm,canonicalize,cse,"
    "reconcile-unrealized-casts"
)
_OWN_CONVERSION = "convert-nvvm-to-llvm"  # of a kernel of llvm and nvvm ops
_UNKNOWN = re.compile(r"\.extern \.func[^;]*?(llvm\.[\w.$]+)")


@dataclass(frozen=True)
class Outcome:
    """What came of an op.

    runs: as `Op.runs`
    by:   "intrinsic" of LLVM's, or "inline asm" of MLIR's; "" where it does not run
    said: the PTX, or a message
    """

    runs: str
    by: str = ""
    said: str = ""


def outcome(op: Op) -> Outcome:
    """The op in a process of its own; ABORT where that one died."""
    with tempfile.TemporaryDirectory() as folder:
        result, errors = Path(folder, "result"), Path(folder, "errors")
        child = multiprocessing.get_context("fork").Process(
            target=_write, args=(op, result, errors)
        )
        child.start()
        child.join(SECONDS)
        if child.is_alive():
            child.kill()
            child.join()
            return Outcome("takes too long")
        if child.exitcode != 0:
            return Outcome(ABORT, said=errors.read_text())
        return Outcome(**json.loads(result.read_text()))


def _write(op: Op, result: Path, errors: Path) -> None:
    """Run the op; what LLVM says when it ends the process goes to `errors`."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), sys.stderr.fileno())
    result.write_text(json.dumps(asdict(_run(op))))


def _run(op: Op) -> Outcome:
    try:
        text = _llvm_ir(op)
    except ir.MLIRError as error:
        return Outcome(REFUSED, said=str(error))
    code = _compiled(text, op)
    unknown = _UNKNOWN.search(code)
    if unknown:
        return Outcome(UNKNOWN, said=unknown[1])
    if ptx.find_ptxas() is not None and op.chip == "sm_90a":
        try:
            cubin = ptx.assemble(code, find_target(op.chip))
            code += "" if cubin is None else cubin.log
        except CompileError as error:
            return Outcome("ptxas refuses", said=str(error))
    return Outcome(YES, "inline asm" if " asm " in text else "intrinsic", code)


def _llvm_ir(op: Op) -> str:
    with ir.Context() as context, ir.Location.unknown():
        context.enable_multithreading(False)
        module = ir.Module.parse(op.text)
        passes = _CONVERSIONS if op.name.startswith("nvgpu.") else _OWN_CONVERSION
        text = f"builtin.module(gpu.module({passes}))"
        passmanager.PassManager.parse(text).run(module.operation)
        return translate_to_llvm_ir(module.body.operations[0].operation)


def _compiled(text: str, op: Op) -> str:
    """PTX, by a back end that is asked for `op.ptx`; this may end the process."""
    binding = nvptx.llvmlite()
    module = binding.parse_assembly(llvm_text.for_llvmlite(text))
    back_end = binding.Target.from_triple(_TRIPLE)
    machine = back_end.create_target_machine(
        cpu=op.chip, features=op.ptx, opt=3, reloc="default", codemodel="default"
    )
    module.triple, module.data_layout = _TRIPLE, str(machine.target_data)
    module.verify()
    return machine.emit_assembly(module)


def fault(op: Op, found: Outcome) -> str:
    """What an op does otherwise than its row says; "" for nothing."""
    if found.runs != op.runs:
        return f"{found.runs}, expected {op.runs}: {found.said[:400]}"
    expected = (op.shows, op.warns if ptx.find_ptxas() is not None else "")
    missing = [one for one in expected if one not in found.said]
    return f"does not show '{missing[0]}': {found.said[:400]}" if missing else ""


def table(found: list[tuple[Op, Outcome]]) -> str:
    """Markdown, a row per op."""
    rows = ["| op | for, PTX | runs | by | note |", "|---|---|---|---|---|"]
    for op, one in found:
        asked = f"{op.chip}, {op.ptx.replace('+ptx8', '8.') or 'own'}"
        rows.append(f"| `{op.name}` | {asked} | {one.runs} | {one.by} | {op.note} |")
    return "\n".join(rows)


def main() -> None:
    """Run all, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="instead of the table")
    as_json = parser.parse_args().json
    nvptx.llvmlite()  # before processes are made, each of which needs it
    found = [(op, outcome(op)) for op in OPS]
    faults = [(op, fault(op, one)) for op, one in found if fault(op, one)]
    if as_json:
        print(json.dumps([asdict(replace(one, said="")) for _, one in found]))
    else:
        print(table(found))
    for op, why in faults:
        print(f"{op.name} ({op.chip} {op.ptx}): {why}", file=sys.stderr)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
