"""The checker: accepts what the prover made, and nothing else."""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Iterator
from typing import Any

import pytest
from ring_kernels import Ring, misbehaves

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.checker.logic.facts import Facts
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.text import read_kernel
from alcop_mlir.errors import CertificateError

ANY_SIZE = {"n": Requirement(0, 2**31 - 1)}
RING = Ring(3, 1)


def certificate(ring: Ring) -> dict[str, Any]:
    """What the prover makes, with the states that a check meets."""
    found = certify(ring.text(), requirements=ANY_SIZE).certificate
    assert found is not None
    met = check(ring.text(), found, Found()).met
    return sealed({**found, "heads": [found["heads"][number] for number in met]})


@pytest.mark.parametrize("slots", [2, 3, 5])
def test_proofs_hold(slots: int) -> None:
    ring = Ring(slots, slots - 2)
    found = certificate(ring)
    assert check(ring.text(), found, Found()).met == tuple(range(len(found["heads"])))


def test_other_ptx_is_refused() -> None:
    with pytest.raises(CertificateError, match="is of other PTX"):
        check(RING.text() + "\n", certificate(RING), Found())


def test_ptx_that_misbehaves_is_refused_even_with_its_hash() -> None:
    """A certificate of the ring, with the hash of a mutant put in."""
    found = certificate(RING)
    for text in mutants(RING.text()):
        digest = hashlib.sha256(text.encode()).hexdigest()
        with pytest.raises(CertificateError):
            check(text, sealed({**found, "ptx_sha256": digest}), Found())


def mutants(text: str) -> Iterator[str]:
    """Of a ring's text, some that misbehave at some trip count."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if "wait_group" in line:
            yield "\n".join(
                [*lines[:number], line.replace("1;", "2;"), *lines[number + 1 :]]
            )
        if any(name in line for name in ("wait_group", "bar.sync", "commit_group")):
            yield "\n".join([*lines[:number], *lines[number + 1 :]])


def test_the_mutants_misbehave() -> None:
    assert misbehaves(Ring(3, 2), 5)
    assert misbehaves(Ring(3, None), 5)
    assert misbehaves(Ring(3, 1, has_barrier=False), 5)


def test_a_tampered_certificate_is_refused() -> None:
    """Any leaf changed, a number by one or a text by a letter.

    With its hash made anew, what is left holds only where another claim is made, which
    holds too, or a state says less than it might: wider ranges, weaker facts.
    """
    found = certificate(RING)
    rng = random.Random(1)
    harmless = 0
    for path in rng.sample(list(leaves(found)), 60):
        changed = copy.deepcopy(found)
        place = changed
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = damaged(place[path[-1]], rng)
        with pytest.raises(CertificateError):
            check(RING.text(), changed, Found())
        try:
            check(RING.text(), sealed(changed), Found())
        except CertificateError:
            continue
        is_range = path[-3:-2] in (("terms",), ("spreads",)) and path[-1] in (1, 2)
        is_claim = path[0] in ("requires", "sha256", "answers")
        harmless_here = is_range or is_claim or "facts" in path
        assert harmless_here or ("terms" in path and is_first(found, path)), path
        harmless += 1
    assert harmless < 20


def is_first(found: dict[str, Any], path: tuple[Any, ...]) -> bool:
    """Whether a state is of the first turn only: how registers grow says nothing."""
    head = found["heads"][path[1]]
    return [0, [f"n{head['pc']}", -1]] in head["facts"]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all leaves."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in items:
        if isinstance(one, (dict, list)):
            yield from leaves(one, (*path, key))
        else:
            yield (*path, key)


def damaged(value: Any, rng: random.Random) -> Any:
    if value is None:  # no claim about the tiles of turns
        return {}
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice((-1, 1))
    return f"x{value[1:]}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 1}, "this is no certificate of a known schema"),
        ({"threads": 63}, "for another number of threads"),
        ({"shared_bytes": 2048}, "has another layout of shared memory"),
        ({"cell_bytes": 2}, "has cells of another size"),
        ({"entry": "other"}, "the PTX has no kernel 'other'"),
        ({"assumes": []}, "does not say what it assumes"),
        ({"fresh": False}, "is wrong about freshness"),
        ({"ends": False}, "is wrong about the end of loops"),
        ({"heads": []}, "a state at the head of a loop is not listed"),
        ({"heads": 3}, "this is no certificate"),
        ({"threads": "64"}, "no whole number: '64'"),
    ],
)
def test_wrong_members(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        check(RING.text(), sealed({**certificate(RING), **change}), Found())


@pytest.mark.parametrize("term", [[], "", [[]]])
def test_terms_of_nothing(term: Any) -> None:
    found = certificate(RING)
    one = next(head for head in found["heads"] if head["terms"])
    one["terms"] = {name: [term, 0, 0] for name in one["terms"]}
    with pytest.raises(CertificateError, match="this is no certificate"):
        check(RING.text(), sealed(found), Found())


@pytest.mark.parametrize("member", ["cells_sha256", "numbers_sha256", "sources_sha256"])
def test_other_numbers_behind_a_loop_are_refused(member: str) -> None:
    """Of a state that is listed where ways out of the loop meet."""
    found = certificate(RING)
    behind = max(head["pc"] for head in found["heads"])
    assert behind > min(head["pc"] for head in found["heads"])
    for head in found["heads"]:
        if head["pc"] == behind:
            head[member] = "0" * 64
    with pytest.raises(CertificateError, match=f"instruction {behind} is not listed"):
        check(RING.text(), sealed(found), Found())


@pytest.mark.parametrize("name", ["%r15", "%p1", "%rd31"])
def test_a_variable_with_the_name_of_a_register_is_refused(name: str) -> None:
    """A register whose number is not needed has none: the variable's is not its."""
    kernel = read_kernel(RING.text(), "ring")
    with pytest.raises(CertificateError, match="stands for two things"):
        Machine(kernel, 64, 768, {"tiles": 0, name: 0}, {})


@pytest.mark.parametrize("value", [None, [], {}, {"schema": 1}, "x", 7])
def test_what_is_no_certificate(value: Any) -> None:
    with pytest.raises(CertificateError, match="this is no certificate"):
        check(RING.text(), value, Found())


def test_a_way_without_an_end() -> None:
    """Where ways meet that never come to the end nobody can say."""
    text = RING.text().replace(
        "DONE:",
        "DONE:\n  @%p1 bra FOREVER;\n  bra.uni LAST;\nFOREVER:\n  bra.uni FOREVER;"
        "\nLAST:",
    )
    flow = Flow(read_kernel(text, "ring"))
    branch = flow.kernel.labels["DONE"]
    with pytest.raises(CertificateError, match="a loop without an end"):
        flow.region(branch)


def test_a_range_that_grows() -> None:
    """None does that something followed from: a listed state may name it."""
    facts = Facts(Found())
    facts.limit("u1", 0, 3)
    facts.limit("u1", 2, 5)
    assert facts.follows({"u1": 1}, [], [])
    facts.limit("u1", 1, 3)
    with pytest.raises(CertificateError, match="of another range than before"):
        facts.limit("u1", -5, 3)


def test_what_is_only_stored_is_not_listed() -> None:
    """As accumulators that an epilogue passes through shared memory."""
    text = RING.text().replace("add.s32 %r5, %r5, %r6;", "add.s32 %r5, %r5, 1;")
    end = "  st.global.b32 [%rd16], %r5;"
    at = "  add.s64 %rd17, %rd7, 0;\n  bar.sync 0;\n  st.shared.b32 [%rd17], %r5;"
    stored = f"{at}\n{end}"
    found = certify(text.replace(end, stored), requirements=ANY_SIZE).certificate
    assert found is not None
    check(text.replace(end, stored), found, Found())
    assert any("%rd11" in head["numbers"] for head in found["heads"])
    assert not any(
        "%r5" in [*head["numbers"], *head["terms"]] for head in found["heads"]
    )
