"""Which variant of a launch runs: guards as closures, made once per program.

A call evaluates them before each launch, so that they have to be fast: the forms that
the compiler makes have closures of their own, all others evaluate polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from alcop_mlir.manifest.kernels import Aligned, AtMost, Condition, Divisible, Launch
from alcop_mlir.polynomials import Polynomial

Numbers = Mapping[str, int]  # sizes and strides, or addresses of arrays, by name
Test = Callable[[Numbers, Numbers], bool]
Chooser = Callable[[Numbers, Numbers], int]


def chooser(launch: Launch) -> Chooser:
    """What gives, for sizes and addresses, the number of the variant that runs."""
    guards = [
        tuple(_test(condition) for condition in variant.guard)
        for variant in launch.variants
    ]

    def choose(sizes: Numbers, addresses: Numbers) -> int:
        for number, guard in enumerate(guards):
            for test in guard:
                if not test(sizes, addresses):
                    break
            else:
                return number
        raise AssertionError("the last variant has no guard")

    return choose


def _test(condition: Condition) -> Test:
    if isinstance(condition, Aligned):
        array, size = condition.array, condition.bytes
        return lambda _, addresses: addresses[array] % size == 0
    if isinstance(condition, Divisible):
        return _divisible(condition)
    return _at_most(condition)


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
