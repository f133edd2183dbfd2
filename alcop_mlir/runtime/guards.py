"""Which variant of a launch runs: guards as closures, made once per program.

A call evaluates them before each launch, so that they have to be fast: the forms that
the compiler makes have closures of their own, all others evaluate polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from alcop_mlir.manifest.kernels import AtMost, Condition, Divisible, Launch
from alcop_mlir.polynomials import Polynomial

Numbers = Mapping[str, int]  # sizes and strides, or addresses of arrays, by name
Test = Callable[[Numbers, Numbers], bool]
Chooser = Callable[[Numbers, Numbers], int]
_TOGETHER = 3  # addresses that one closure tests


def chooser(launch: Launch) -> Chooser:
    """What gives, for sizes and addresses, the number of the variant that runs."""
    guards = [_tests(variant.guard) for variant in launch.variants]

    def choose(sizes: Numbers, addresses: Numbers) -> int:
        for number, guard in enumerate(guards):
            for test in guard:
                if not test(sizes, addresses):
                    break
            else:
                return number
        raise AssertionError("the last variant has no guard")

    return choose


def _tests(guard: Sequence[Condition]) -> tuple[Test, ...]:
    """One of each condition, but of several addresses that are alike."""
    tests: list[Test] = []
    arrays: dict[int, list[str]] = {}
    for condition in guard:
        if isinstance(condition, Divisible):
            tests.append(_divisible(condition))
        elif isinstance(condition, AtMost):
            tests.append(_at_most(condition))
        else:
            arrays.setdefault(condition.bytes, []).append(condition.array)
    for size, names in arrays.items():
        most = 1 if size & (size - 1) else _TOGETHER  # | keeps the low bits only
        some = (names[n : n + most] for n in range(0, len(names), most))
        tests += (_aligned(one, size) for one in some)
    return tuple(tests)


def _aligned(arrays: Sequence[str], size: int) -> Test:
    """Whether addresses are multiples: one of any number, several of a power of two."""
    match arrays:
        case [one, other, third]:
            return lambda _, at: (at[one] | at[other] | at[third]) % size == 0
        case [one, other]:
            return lambda _, at: (at[one] | at[other]) % size == 0
    (one,) = arrays
    return lambda _, at: at[one] % size == 0


def _divisible(condition: Divisible) -> Test:
    by, value = condition.by, condition.value
    match value.terms:
        case ((1, (one,)),):
            return lambda sizes, _: sizes[one] % by == 0
    return lambda sizes, _: value.value(sizes) % by == 0


def _at_most(condition: AtMost) -> Test:
    least, most = condition.least, condition.most
    if (known := most.known) is not None:
        return _below(least, known)
    return lambda sizes, _: least.value(sizes) <= most.value(sizes)


def _below(value: Polynomial, most: int) -> Test:
    match value.terms:
        case ((1, (one,)),):
            return lambda sizes, _: sizes[one] <= most
        case ((1, (one, other)),):
            return lambda sizes, _: sizes[one] * sizes[other] <= most
        case ((1, (one, other, third)),):
            return lambda sizes, _: sizes[one] * sizes[other] * sizes[third] <= most
    return lambda sizes, _: value.value(sizes) <= most
