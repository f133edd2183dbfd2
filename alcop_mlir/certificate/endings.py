"""That loops end: a fact bounds the number of the turn, by what no turn changes.

At the end of a turn facts say under what the loop goes on. One of them that names the
turn with a negative coefficient, and besides only what no turn changes,
says that there are no more turns than that: `K - 32 * n - 1 >= 0`.
"""

from __future__ import annotations

from collections.abc import Iterable

from alcop_mlir.certificate.linear import Linear, Symbols


def is_bounded(
    facts: Iterable[Linear], turn: str, inside: set[int], symbols: Symbols
) -> bool:
    """Whether a fact bounds the turn.

    turn:   its symbol
    inside: the instructions of the loop
    """
    return any(
        fact.terms.get(turn, 0) < 0
        and not any(
            changes(name, inside)
            for symbol in fact.terms.keys() - {turn}
            for name in symbols.inside(symbol)
        )
        for fact in facts
    )


def changes(name: str, inside: set[int]) -> bool:
    """Whether a symbol stands for another number in another turn: that of a turn, of a
    register at a head or where ways meet, or of what an instruction makes, in the loop.
    """
    pc = name[1:].split(".")[0]
    return name[0] in "nhuj" and pc.isdigit() and int(pc) in inside
