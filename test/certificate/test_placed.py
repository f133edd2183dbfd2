"""Results that are made of the right elements, each added once and stored once."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from placed_cases import restated, verdict

from alcop_mlir.certificate.certificate import sealed, stored
from alcop_mlir.checker.check import check
from alcop_mlir.compilation.certification import certified
from alcop_mlir.errors import CertificateError, LaunchError, NotPlacedError
from alcop_mlir.runtime.certificates import required_certificates
from alcop_mlir.tools import certify

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import CASES, Case, matmul

BATCH = """
func.func @f(%A: memref<3x64x128xf16>, %B: memref<3x128x64xf16>,
    %C: memref<3x64x64xf32>) {
  linalg.batch_matmul ins(%A, %B : memref<3x64x128xf16>, memref<3x128x64xf16>)
    outs(%C : memref<3x64x64xf32>)
  return
}
"""
PLAIN = CASES[0]  # nn f16 3,2
LOAD = re.compile(r"(ldmatrix\S* \{[^}]*\}, \[%rd\d+)\];")
COPY = re.compile(r"\tcp\.async\.cg\.shared\.global \[%rd\d+\], \[%rd(\d+)\], 16;")


@pytest.mark.parametrize(
    "case",
    [
        PLAIN,
        CASES[6],  # a bias, and relu
        matmul("nn", 128, 128, 96, "block=64,64,32 warp=32,32 stages=2,1"),
        Case("batch", BATCH, "block=32,32,32 warp=16,16 stages=2,1"),
        # Half of the threads copy: what others would is no number of a block and one.
        matmul("nt", 64, 64, 16, "block=32,32,16 warp=16,16 stages=1,1"),
        matmul("nn", 64, 64, 200, "block=64,64,32 warp=32,32 stages=3,1"),  # a tail
        matmul("tn", 128, 64, 256, "block=64,64,32 warp=32,32 stages=3,2"),
        matmul("nt", 64, 128, 1024, "block=64,64,32 warp=32,32 stages=4,1 raster=2"),
    ],
    ids=lambda one: one.name,
)
def test_results_of_contractions_are_placed(case: Case) -> None:
    report = verdict(case, case.ptx)
    assert report.verdict == "proven", report.misplaced
    assert report.certificate is not None
    assert report.certificate["placed"] == json.loads(case.launched.stated)
    check(case.ptx, report.certificate)


def lines(text: str, pattern: str) -> list[str]:
    return [line for line in text.splitlines() if re.search(pattern, line)]


def shifted_row(text: str) -> str:
    """A fragment of the next row."""
    first = LOAD.search(text)
    assert first is not None
    return text.replace(first[0], f"{first[1]}+64];", 1)


def other_swizzle(text: str) -> str:
    """Rows of a fragment that are at several indices of the sum."""
    assert "%rd89, %rd88, 24;" in text
    return text.replace("%rd89, %rd88, 24;", "%rd89, %rd88, 8;", 1)


def exchanged_halves(text: str) -> str:
    """The halves of A's fragments along the sum, in one `mma.sync` of the loop."""
    products = re.findall(r"mma\.sync[^;]*;", text)
    one = products[10]
    a = re.search(r"\{(%r\d+), (%r\d+), (%r\d+), (%r\d+)\},\s*\{%r\d+, %r\d+\},", one)
    assert a is not None
    other = f"{{{a[3]}, {a[4]}, {a[1]}, {a[2]}}}"
    return text.replace(one, one.replace(a[0][: a[0].index("}") + 1], other), 1)


def mixed_rows(text: str) -> str:
    """The second halves of two rows of A, in one `mma.sync` of the loop."""
    one = re.findall(r"mma\.sync[^;]*;", text)[10]
    a = re.search(r"\{(%r\d+), (%r\d+), (%r\d+), (%r\d+)\},\s*\{%r\d+, %r\d+\},", one)
    assert a is not None
    return text.replace(one, one.replace(f"{a[3]}, {a[4]}", f"{a[4]}, {a[3]}", 1), 1)


def middle_left_out(text: str) -> str:
    """An `mma.sync` of the loop, of which the result goes on into others."""
    one = re.findall(r"mma\.sync[^;]*;", text)[20]
    named = re.findall(r"%r\d+", one)
    pairs = zip(named[:4], named[-4:], strict=True)
    return text.replace(one, " ".join(f"mov.b32 {a}, {b};" for a, b in pairs), 1)


def tile_twice(text: str) -> str:
    """The second tile of A is the first one again."""
    assert "[%rd77+64]" in text
    return text.replace("[%rd77+64]", "[%rd77]", 1)


def no_copy(text: str) -> str:
    """A part of a tile that is not copied."""
    (copies) = COPY.findall(text)
    line = next(m[0] for m in COPY.finditer(text) if m[1] == copies[-1])
    return text.replace(line, "", 1)


def lower_row(text: str) -> str:
    (first, *_) = lines(text, r"st\.global\.v4")
    assert "[%rd128]" in first
    return text.replace(first, first.replace("[%rd128]", "[%rd128+256]"), 1)


def exchanged_stores(text: str) -> str:
    """Two results, each where the other one belongs."""
    one, other = "[%rd128+32]", "[%rd128+64]"
    assert one in text
    assert other in text
    text = text.replace(one, "[here]").replace(other, one)
    return text.replace("[here]", other)


def swapped_sums(text: str) -> str:
    """Two accumulators of one `mma.sync`, in the loop."""
    products = re.findall(r"mma\.sync[^;]*;", text)
    one = products[20]
    named = re.findall(r"%r\d+", one)[:2]
    other = one.replace(f"{named[0]}, {named[1]}", f"{named[1]}, {named[0]}", 1)
    assert other != one
    return text.replace(one, other, 1)


def product_left_out(text: str) -> str:
    """The last `mma.sync` of an element: its sum before is stored."""
    one = re.findall(r"mma\.sync[^;]*;", text)[-1]
    named = re.findall(r"%r\d+", one)
    moves = [
        f"mov.b32 {to}, {of};" for to, of in zip(named[:4], named[-4:], strict=True)
    ]
    return text.replace(one, " ".join(moves), 1)


def early_end(text: str) -> str:
    """A turn less."""
    assert "%rd153, 191;" in text
    return text.replace("%rd153, 191;", "%rd153, 95;")


def no_store(text: str) -> str:
    (*_, last) = lines(text, r"st\.global\.v4")
    return text.replace(last, "")


def other_start(text: str) -> str:
    """It starts from the elements of the next row of C."""
    (first, *_) = lines(text, r"ld\.global\.v2")
    return text.replace(first, first.replace("[%rd66]", "[%rd66+256]"), 1)


def added_again(text: str) -> str:
    """A result that is stored, loaded, and added once more."""
    store = re.search(r"st\.global\.v4\.b32 \t\[(%rd\d+)\], \{([^}]*)\};", text)
    assert store is not None
    first, second, third, _ = store[2].split(", ")
    more = f"""
\tld.global.b32 {second}, [{store[1]}];
\tadd.f32 {third}, {first}, {second};
\tst.global.b32 [{store[1]}], {third};"""
    return text.replace(store[0], store[0] + more, 1)


def added_by_a_copy(text: str) -> str:
    """The same, by way of shared memory."""
    store = re.search(r"st\.global\.v4\.b32 \t\[(%rd\d+)\], \{(%r\d+)", text)
    assert store is not None
    more = f"""{{
\t.reg .b32 %q<4>;
\tbar.sync 0;
\tmov.u32 %q0, %tid.x;
\tmov.u32 %q3, __dynamic_shmem__0;
\tmad.lo.u32 %q0, %q0, 4, %q3;
\tcp.async.ca.shared.global [%q0], [{store[1]}], 4;
\tcp.async.wait_all;
\tld.shared.b32 %q1, [%q0];
\tadd.f32 %q2, {store[2]}, %q1;
\tst.global.b32 [{store[1]}], %q2;
\t}}"""
    end = text.index(";", store.start()) + 1
    return text[:end] + more + text[end:]


@pytest.mark.parametrize(
    "change",
    [
        added_again,
        added_by_a_copy,
        shifted_row,
        other_swizzle,
        exchanged_halves,
        mixed_rows,
        middle_left_out,
        tile_twice,
        no_copy,
        lower_row,
        exchanged_stores,
        swapped_sums,
        product_left_out,
        early_end,
        no_store,
        other_start,
    ],
)
def test_what_is_elsewhere_is_not_placed(change: Any) -> None:
    text = change(PLAIN.ptx)
    assert text != PLAIN.ptx
    report = verdict(PLAIN, text)
    assert report.verdict != "proven"
    assert not report.is_placed
    assert PLAIN.behaviour(text) != "clean"


def test_halves_of_both_fragments_may_be_exchanged() -> None:
    """A sum has no order: within one `mma.sync`, neither has an index."""
    products = re.findall(r"mma\.sync[^;]*;", PLAIN.ptx)
    one = products[10]
    r = re.findall(r"%r\d+", one)
    swapped = f"{{{r[6]}, {r[7]}, {r[4]}, {r[5]}}},\n{{{r[9]}, {r[8]}}}"
    plain = one[one.index(f"{{{r[4]}") : one.index(f"{r[9]}}}") + len(r[9]) + 1]
    text = PLAIN.ptx.replace(one, one.replace(plain, swapped))
    assert text != PLAIN.ptx
    assert verdict(PLAIN, text).verdict == "proven"


def placed() -> dict[str, Any]:
    found = verdict(PLAIN, PLAIN.ptx).certificate
    assert found is not None
    return copy.deepcopy(found)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("extents", "k"), 288),  # a tile less
        (("extents", "m"), 128),  # rows that nobody stores
        (("extents", "n"), 32),
        (("extents", "n"), 1),  # the others are between elements
        (("arrays", "f_param_0", 1, 0), 640),  # a row between rows
        (("arrays", "f_param_1", 1), [1, 320]),  # the other order
        (("init",), None),
        (("grid",), [2, 1, 1]),  # blocks that store one place
        (("outputs", "f_param_2"), ["f_param_1"]),
    ],
)
def test_of_other_statements_it_is_not_shown(path: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(CertificateError):
        check(PLAIN.ptx, restated(placed(), path, value))


def test_what_else_is_read_is_stated() -> None:
    """A bias that nobody says is added."""
    case = CASES[6]
    found = verdict(case, case.ptx).certificate
    assert found is not None
    outputs = found["placed"]["outputs"]
    (name,) = (n for n, reads in outputs.items() if reads)
    outputs[name] = []
    with pytest.raises(NotPlacedError, match="is of other arrays"):
        check(case.ptx, sealed(found))


def test_a_statement_of_the_same_results_is_accepted() -> None:
    """A's columns go on behind the sum: no element is another one."""
    found = placed()
    found["placed"]["order"] = "nm"
    check(PLAIN.ptx, sealed(found))


def test_without_a_statement_it_is_proven_in_part() -> None:
    one = PLAIN.launched
    given = (one.name, one.threads, one.shared_bytes, dict(one.requirements), 60)
    report = certified(PLAIN.ptx, *given, one.promised)
    assert report.verdict == "proven in part: placed not shown"
    assert report.misplaced == "nothing says what it computes"


def test_wrong_results_have_an_error_of_their_own() -> None:
    """So that what else is proven stays so."""
    found = placed()
    found["placed"]["extents"]["k"] = 288
    with pytest.raises(NotPlacedError):
        check(PLAIN.ptx, sealed(found))


def test_shared_memory_is_looked_at_where_results_are_followed() -> None:
    """A certificate for the same kernel without a barrier: all results are placed."""
    found = placed()
    text = PLAIN.ptx.replace("bar.sync \t0;", "", 1)
    assert text != PLAIN.ptx
    found["ptx_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(CertificateError) as raised:
        check(text, sealed(found))
    assert not isinstance(raised.value, NotPlacedError)


def launched(found: dict[str, Any]) -> None:
    """Asks for a launch of the kernel with this certificate."""
    listed = [{"entry": found["entry"], "certificate": sealed(found)}]
    code = {
        name: replace(one, certificates=stored(listed))
        for name, one in PLAIN.bundle.code.items()
    }
    bundle = replace(PLAIN.bundle, code=code)
    certificates = required_certificates(bundle)
    assert certificates is not None
    function = bundle.function()
    (variant,) = function.launches[0].variants
    certificates.check(function, [variant], variant.kernels, {})


def test_the_launcher_wants_the_manifest_s_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is true, but of other results than those of the bundle, is refused."""
    found = placed()
    monkeypatch.setenv("ALCOP_REQUIRE_CERTIFICATE", "1")
    launched(found)
    found["placed"]["order"] = "nm"
    with pytest.raises(LaunchError, match="for other results"):
        launched(found)


def test_the_launcher_refuses_a_requirement_of_an_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of pointers a certificate may require that they are addresses, and no more."""
    found = placed()
    assert {o["parameter"] for o in found["requires"]} >= {"f_param_0"}
    monkeypatch.setenv("ALCOP_REQUIRE_CERTIFICATE", "1")
    (least,) = (o for o in found["requires"] if o["parameter"] == "f_param_0")
    for name, value in (("low", 16), ("high", 2**40)):
        with pytest.raises(LaunchError, match="requires the address of arg0"):
            launched(changed(found, {**least, name: value}))


def changed(found: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    rest = [o for o in found["requires"] if o["parameter"] != one["parameter"]]
    return {**found, "requires": [*rest, one]}


SAID = "f_param_2[64m,64n]:4 += f_param_0[64m,320k]:2 * f_param_1[320k,64n]:2"


@pytest.mark.parametrize(
    ("said", "status", "placed"),
    [
        (SAID, 0, "yes: results are made of the right elements"),
        (SAID.replace("+=", "="), 4, "not shown: a sum that starts from f_param_2"),
        (SAID.replace("320k", "288k"), 4, "not shown: "),
    ],
)
def test_options_say_what_is_computed(
    said: str,
    status: int,
    placed: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "f.ptx"
    file.write_text(PLAIN.ptx)
    arrays = ["--array", "f_param_0=40960", "--array", "f_param_1=40960"]
    arrays += ["--array", "f_param_2=16384", "--grid", "1,1,1", "--shared", "24576"]
    assert certify.main([str(file), *arrays, "--computes", said]) == status
    shown = " ".join(capsys.readouterr().out.split())
    assert f"placed {placed}" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--computes", "c = a * b"], "expected C[64m,64n]:4 = A[64m,32k]:2"),
        (["--computes", SAID], "--computes needs --grid X,Y,Z, in numbers"),
        (["--computes", SAID, "--grid", "n,1,1"], "needs --grid X,Y,Z, in numbers"),
        (
            ["--computes", SAID.replace("[320k", "[32j"), "--grid", "1,1,1"],
            "not one contraction",
        ),
    ],
)
def test_what_options_cannot_say(
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "f.ptx"
    file.write_text(PLAIN.ptx)
    assert certify.main([str(file), "--shared", "24576", *options]) == 1
    assert message in capsys.readouterr().err
