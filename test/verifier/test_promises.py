"""Two versions of a loop: the condition of the first is weakened, and that is found."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.verifier.promises import check_promises

SHARED = "memref<32xf32, #gpu.address_space<workgroup>>"
WIDE = "memref<64x32xf32>"
OPEN = "memref<?x?xf32, strided<[?, 1]>>"


def kernel(a: str, c: str) -> str:
    """It copies rows of the first argument, and writes another."""
    return f"""
      gpu.module @kernels {{
        gpu.func @kernel(%A: {a}, %B: {WIDE}, %C: {c}) workgroup(%s : {SHARED})
            kernel attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c31 = arith.constant 31 : index
          %t = gpu.thread_id x
          %u = arith.subi %c31, %t : index
          scf.for %k = %c0 to %c31 step %c1 {{
            %x = memref.load %A[%k, %t] : {a}
            memref.store %x, %s[%t] : {SHARED}
            gpu.barrier
            %p = memref.load %s[%u] : {SHARED}
            %q = memref.load %B[%k, %u] : {WIDE}
            %y = arith.addf %p, %q : f32
            memref.store %y, %C[%k, %t] : {c}
            gpu.barrier
          }}
          gpu.return
        }}
      }}"""


pytestmark = pytest.mark.usefixtures("context")


def versions(a: str, c: str) -> str:
    module = ir.Module.parse(kernel(a, c))
    run_pipeline(module, "builtin.module(alcop-version-loops)")
    text = str(module)
    assert "alcop.noalias = true" in text
    return text


def is_found(text: str) -> bool:
    return bool(check_promises(ir.Module.parse(text).operation))


# Of each kind: a pattern, and what replaces it.
MUTATIONS = {
    "other order": (r"cmpi ule", "cmpi uge"),
    "always": (r"scf\.if %\w+", "%true = arith.constant true\nscf.if %true"),
    "one of two": (r"arith\.andi", "arith.ori"),
    "any": (r"= arith\.cmpi ule, (%\w+), (%\w+)", r"= arith.cmpi ne, \1, \2"),
    "no bytes": (r"arith\.addi (%intptr\w*), %\w+", r"arith.addi \1, %c0"),
}


@pytest.mark.parametrize("a", [WIDE, OPEN])
@pytest.mark.parametrize("c", [WIDE, OPEN])
def test_weaker_conditions_are_found(a: str, c: str) -> None:
    text = versions(a, c)
    assert not is_found(text)
    seen: Counter[tuple[str, bool]] = Counter()
    for kind, (pattern, instead) in MUTATIONS.items():
        for match in re.finditer(pattern, text):
            mutant = text[: match.start()] + match.expand(instead)
            seen[kind, is_found(mutant + text[match.end() :])] += 1
    print(seen)
    # To where an argument begins, an offset of zero is added too: that is no mutant.
    assert {kind for kind in MUTATIONS if seen[kind, False]} <= {"no bytes"}, seen
    assert all(seen[kind, True] for kind in MUTATIONS), seen


def test_a_promise_of_a_user_is_believed() -> None:
    end = "gpu.barrier\n          }"
    text = kernel(WIDE, WIDE).replace(end, f"{end} {{alcop.noalias = true}}")
    assert "noalias" in text
    assert not is_found(text)


def test_arguments_that_are_said_to_be_apart() -> None:
    """Nothing has to be asked of them."""
    text = versions(WIDE, WIDE)
    always = re.sub(*MUTATIONS["always"], text, count=1)
    assert is_found(always)
    noalias = f"%arg2: {WIDE}"
    assert noalias in always
    said = always.replace(noalias, f"{noalias} {{llvm.noalias}}", 1)
    assert not is_found(said)
