"""Which variant of a kernel is launched, and what no launch can do yet."""

from __future__ import annotations

import json
import sys
import timeit
from dataclasses import replace
from pathlib import Path

import pytest
from bundles import arrays, bundle, matmul, pointers
from fake_cupy import FakeCupy, GpuArray
from fake_emulator import FakeEmulator
from hypothesis import given
from hypothesis import strategies as st

from alcop_mlir.errors import ConfigError, LaunchError
from alcop_mlir.manifest.arrays import Intermediate
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import (
    Aligned,
    AtMost,
    Condition,
    Divisible,
    Launch,
    Variant,
)
from alcop_mlir.polynomials import collected, constant, size
from alcop_mlir.runtime.bundle import load, save
from alcop_mlir.runtime.guards import chooser
from alcop_mlir.runtime.launch import Program
from alcop_mlir.runtime.workspace import plan

SMALL = AtMost(size("M") * size("M"), constant(64 * 64))
EVEN = Divisible(size("M") + constant(1), 2)


def guarded(*guards: tuple[Condition, ...]) -> Function:
    """`matmul("M")` with a variant for each guard, `k0`, `k1`, ... before the last."""
    function = matmul("M")
    (kernel,) = function.kernels
    variants = [
        Variant((replace(kernel, name=f"k{number}"),), guard)
        for number, guard in enumerate(guards)
    ]
    return replace(function, launches=(Launch((*variants, Variant((kernel,)))),))


@pytest.mark.parametrize(
    ("guards", "rows", "name"),
    [
        ([(SMALL,)], 64, "k0"),
        ([(SMALL,)], 65, "matmul"),
        ([(EVEN,)], 65, "k0"),
        ([(EVEN,)], 64, "matmul"),
        ([(SMALL, EVEN), (SMALL,), (EVEN,)], 63, "k0"),
        ([(SMALL, EVEN), (SMALL,), (EVEN,)], 64, "k1"),
        ([(SMALL, EVEN), (SMALL,), (EVEN,)], 65, "k2"),
        ([(SMALL, EVEN), (SMALL,), (EVEN,)], 66, "matmul"),
        ([(Aligned("A", 16),)], 64, "k0"),
        ([(Aligned("A", 1 << 60),)], 64, "matmul"),
        ([()], 64, "k0"),
    ],
)
def test_the_first_variant_whose_guard_holds_is_launched(
    emulator: FakeEmulator,
    guards: list[tuple[Condition, ...]],
    rows: int,
    name: str,
    tmp_path: Path,
) -> None:
    """All of its conditions; the last one has none. Also from a stored bundle."""
    stored = bundle(guarded(*guards))
    save(stored, tmp_path / "out")
    assert load(tmp_path / "out") == stored
    Program(load(tmp_path / "out"))(*arrays(m=rows))
    assert [call[1] for call in emulator.calls] == [name]


def test_variants_are_chosen_on_a_gpu_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their module is loaded once, whichever are launched."""
    cupy = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    program = Program(bundle(guarded((SMALL,))))
    for rows in (64, 65, 64):
        program(*map(GpuArray, arrays(m=rows)))
    assert [launch.name for launch in cupy.launches] == ["k0", "matmul", "k0"]
    assert len(set(cupy.loaded)) == 1


def test_a_last_variant_with_a_guard_is_refused() -> None:
    """No kernel would be launched where it does not hold."""
    (kernel,) = matmul("M").kernels
    for variants in ((), (Variant((kernel,), (SMALL,)),)):
        with pytest.raises(ConfigError, match="the last variant must have no guard"):
            Launch(variants)


def two_ways() -> Function:
    """For up to 64 rows by two kernels with a buffer in between, else by one."""
    (kernel,) = matmul("M").kernels
    first = replace(kernel, name="first", arguments=pointers("A", "x"))
    second = replace(kernel, name="second", arguments=pointers("x", "C"))
    ways = Variant((first, second), (SMALL,)), Variant((kernel,))
    return replace(
        matmul("M"),
        launches=(Launch(ways),),
        intermediates=(Intermediate("x", "f32", ("M",)),),
    )


@pytest.mark.parametrize(
    ("rows", "names", "room"), [(64, ["first", "second"], 256), (65, ["matmul"], 0)]
)
def test_a_variant_is_a_sequence_of_kernels(
    emulator: FakeEmulator, rows: int, names: list[str], room: int, tmp_path: Path
) -> None:
    """Buffers of variants that do not run take no memory."""
    save(bundle(two_ways()), tmp_path / "out")
    program = Program(load(tmp_path / "out"))
    program(*arrays(m=rows))
    assert [call[1] for call in emulator.calls] == names
    assert program.last_variants == (0 if room else 1,)
    (launch,) = two_ways().launches
    kernels = launch.variants[program.last_variants[0]].kernels
    assert plan(two_ways().intermediates, kernels, {"M": rows}).bytes == room


def test_a_variant_has_checks_of_its_own() -> None:
    """Before anything runs; where another variant runs they do not count."""
    function = two_ways()
    (launch,) = function.launches
    first, last = launch.variants
    even = AtMost(constant(3), size("M"))
    launch = Launch((replace(first, checks=(even,)), last))
    program = Program(bundle(replace(function, launches=(launch,))))
    message = "^sizes do not fit together: M is 2, expected at least 3$"
    with pytest.raises(LaunchError, match=message):
        program(*arrays(m=2))


def test_calls_of_other_variants_are_planned_anew(emulator: FakeEmulator) -> None:
    """The last plan is used again for the same sizes and variants alone."""
    program = Program(bundle(two_ways()))
    for rows in (64, 64, 65, 64):
        program(*arrays(m=rows))
    names = [call[1] for call in emulator.calls]
    assert names == ["first", "second"] * 2 + ["matmul"] + ["first", "second"]


def test_schema_2_is_read(tmp_path: Path) -> None:
    """There a variant is one kernel."""
    save(bundle(guarded((SMALL,))), tmp_path / "out")
    manifest = tmp_path / "out" / "manifest.json"
    value = json.loads(manifest.read_text())
    for variant in value["functions"][0]["launches"][0]["variants"]:
        (variant["kernel"],) = variant.pop("kernels")
    manifest.write_text(json.dumps(value | {"schema": 2}))
    assert load(tmp_path / "out") == bundle(guarded((SMALL,)))


NAMES: tuple[str, ...] = ("M", "N", "K", "lda")
POLYNOMIALS = st.lists(
    st.tuples(st.integers(-3, 3), st.lists(st.sampled_from(NAMES), max_size=3)),
    max_size=3,
).map(lambda terms: collected((n, tuple(factors)) for n, factors in terms))
CONDITIONS = st.one_of(
    st.builds(AtMost, POLYNOMIALS, POLYNOMIALS),
    st.builds(AtMost, POLYNOMIALS, st.integers(-9, 99).map(constant)),
    st.builds(AtMost, st.sampled_from(NAMES).map(size), st.just(constant(4))),
    st.builds(Divisible, POLYNOMIALS, st.integers(1, 9)),
    st.builds(Divisible, st.sampled_from(NAMES).map(size), st.integers(1, 9)),
    st.builds(Aligned, st.sampled_from("ABCD"), st.sampled_from((1, 8, 12, 16))),
)


def holds(one: Condition, sizes: dict[str, int], addresses: dict[str, int]) -> bool:
    """The same as the launcher evaluates, from the polynomials."""
    if isinstance(one, Aligned):
        return addresses[one.array] % one.bytes == 0
    if isinstance(one, Divisible):
        return one.value.value(sizes) % one.by == 0
    return one.least.value(sizes) <= one.most.value(sizes)


@given(
    st.lists(st.lists(CONDITIONS, max_size=5), max_size=4),
    st.tuples(*[st.integers(0, 9)] * len(NAMES)),
    st.tuples(*[st.integers(0, 64)] * 4),
)
def test_guards_are_evaluated_as_they_read(
    guards: list[list[Condition]], values: tuple[int, ...], places: tuple[int, ...]
) -> None:
    """Whichever closures they become."""
    (kernel,) = matmul("M").kernels
    variants = [Variant((kernel,), tuple(guard)) for guard in guards]
    sizes: dict[str, int] = dict(zip(NAMES, values, strict=True))
    addresses: dict[str, int] = dict(zip("ABCD", places, strict=True))
    found = chooser(Launch((*variants, Variant((kernel,)))))(sizes, addresses)
    true = [all(holds(one, sizes, addresses) for one in guard) for guard in guards]
    assert found == [*true, True].index(True)


@pytest.mark.parametrize("arrays", range(1, 5))
def test_each_address_counts(arrays: int) -> None:
    """Several are tested at once, of which one may be the only wrong one."""
    (kernel,) = matmul("M").kernels
    names = "ABCD"[:arrays]
    guarded = Variant((kernel,), tuple(Aligned(name, 16) for name in names))
    choose = chooser(Launch((guarded, Variant((kernel,)))))
    assert choose({}, dict.fromkeys(names, 48)) == 0
    for wrong in names:
        assert choose({}, {name: 48 + 8 * (name == wrong) for name in names}) == 1


@pytest.mark.parametrize("factors", range(1, len(NAMES) + 1))
def test_each_factor_counts(factors: int) -> None:
    """Up to three sizes that are multiplied are compared in ways of their own."""
    (kernel,) = matmul("M").kernels
    value = collected([(1, NAMES[:factors])])
    for number in range(factors):
        sizes = {name: 3 if n == number else 1 for n, name in enumerate(NAMES)}
        for most, expected in ((2, 1), (3, 0)):
            guarded = Variant((kernel,), (AtMost(value, constant(most)),))
            choose = chooser(Launch((guarded, Variant((kernel,)))))
            assert choose(sizes, {}) == expected


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (SMALL, "M * M <= 4096"),
        (EVEN, "(M + 1) % 2 == 0"),
        (Divisible(size("K"), 8), "K % 8 == 0"),
        (Aligned("A", 16), "address of A % 16 == 0"),
    ],
)
def test_conditions_are_readable(condition: Condition, text: str) -> None:
    assert str(condition) == text


def test_code_is_stored_once_per_module(tmp_path: Path) -> None:
    """However many kernels it holds."""
    save(bundle(guarded((SMALL,), (EVEN,))), tmp_path / "out")
    names = sorted(file.name.split("-")[0] for file in (tmp_path / "out").iterdir())
    assert names == ["manifest.json", "matmul", "matmul"]  # PTX and cubin


def test_guards_take_little_time() -> None:
    """At most 2 us for four variants; here five times that: other tests run as well."""
    (kernel,) = matmul("M").kernels
    rows = (
        *(Divisible(size(name), 8) for name in ("K", "N")),
        *(Aligned(name, 16) for name in "ABC"),
    )
    limits = AtMost(size("M"), constant(64)), AtMost(size("M") * size("N"), constant(9))
    guards = [(limits[0], *rows), (limits[1], *rows), rows, ()]
    choose = chooser(Launch(tuple(Variant((kernel,), guard) for guard in guards)))
    sizes = {"M": 65, "N": 4096, "K": 4096}
    addresses = {"A": 1 << 40, "B": 1 << 41, "C": 8}
    assert choose(sizes, addresses) == 3
    seconds = min(
        timeit.repeat(lambda: choose(sizes, addresses), repeat=50, number=100)
    )
    assert seconds / 100 < 10e-6
