"""What registers hold, as text: two states with the same may cover each other."""

from __future__ import annotations

import hashlib

from alcop_mlir.certificate.state import State
from alcop_mlir.certificate.values import Exact, Spread, Truth, Uniform


def exact_digest(state: State) -> str:
    """Of all registers that hold a number in each thread."""
    found = hashlib.sha256()
    for name in sorted(state.registers):
        value = state.registers[name]
        if isinstance(value, Exact):
            found.update(name.encode() + b"=" + value.lanes.tobytes())
    return found.hexdigest()


def uniform_text(state: State) -> str:
    """Of all registers that hold an unknown which threads share."""
    found = []
    for name in sorted(state.registers):
        value = state.registers[name]
        if isinstance(value, Uniform):
            found.append(f"{name} = {value.term} in {value.low}..{value.high}")
        elif isinstance(value, Truth):
            found.append(f"{name} = {value.condition.text}")
        elif isinstance(value, Spread):
            found.append(f"{name} = {value.digest()}")
    return "; ".join(found)
