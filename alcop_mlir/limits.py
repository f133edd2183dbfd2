"""How much is read, run or made at most, all in one place; `docs/limits.md`.

What comes from others may be of any size: each limit is checked before the memory or
the time is spent, and its message says how to raise it, by an environment variable.
"""

from __future__ import annotations

from alcop_mlir import knobs
from alcop_mlir.errors import AlcopError, ConfigError
from alcop_mlir.frozen import frozen

_MIB = 2**20


@frozen
class Limit:
    """At most `default` of `unit`, unless the variable says another number.

    of: what is limited, for the docs
    """

    variable: str
    default: int
    unit: str
    of: str

    @property
    def most(self) -> int:
        """The limit that holds now; ConfigError where the variable has no number."""
        given = knobs.limit(self.variable)
        return self.default if given is None else given

    def check(
        self, given: float, what: str, error: type[AlcopError] = ConfigError
    ) -> None:
        """Raise `error` where `given`, which `what` has, is too much."""
        if given > self.most:
            raise error(f"{what}: {number(given)} {self.unit}, {self.expected()}")

    def expected(self) -> str:
        """What a message says of it."""
        return f"expected at most {self.most}; {self.variable}=N allows more"


MLIR = Limit("ALCOP_MAX_MLIR", 64 * _MIB, "bytes", "an MLIR file, or stdin")
PTX = Limit("ALCOP_MAX_PTX", 16 * _MIB, "bytes", "PTX that the emulator reads")
JSON = Limit("ALCOP_MAX_JSON", 16 * _MIB, "bytes", "a manifest, or a launch file")
BUNDLE = Limit(
    "ALCOP_MAX_BUNDLE", 256 * _MIB, "bytes", "all files of a bundle, unpacked"
)
RECORDS = Limit("ALCOP_MAX_RECORDS", 64 * _MIB, "bytes", "a file of tuning records")
ARRAYS = Limit(
    "ALCOP_MAX_ARRAYS",
    512 * _MIB,
    "bytes",
    "the arrays that `alcop-run` makes, and those of one call between kernels",
)
MEMORY = Limit(
    "ALCOP_MAX_MEMORY",
    1024 * _MIB,
    "bytes",
    "memory of one kernel on the emulator: global, or local of all threads at once",
)
BLOCKS = Limit("ALCOP_MAX_BLOCKS", 2**22, "blocks", "a grid on the emulator")
INSTRUCTIONS = Limit(
    "ALCOP_MAX_INSTRUCTIONS",
    2**18,
    "instructions",
    "a kernel on the emulator, with the functions that it calls",
)
SECONDS = Limit(
    "ALCOP_MAX_SECONDS", 25, "seconds", "all kernels of an `alcop-run` on the emulator"
)
LIMITS = (
    MLIR,
    PTX,
    JSON,
    BUNDLE,
    RECORDS,
    ARRAYS,
    MEMORY,
    BLOCKS,
    INSTRUCTIONS,
    SECONDS,
)


def number(value: float) -> str:
    """`value` for a message, however large it is."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"more than 2^{value.bit_length() - 1}"  # str may refuse its digits
    return str(value)
