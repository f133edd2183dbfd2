"""alcop-opt: mlir-opt with our passes; see `alcop-opt --help`.

Reads a file or stdin, runs passes, prints the result. Exit status 0, or 1 with one line
`error: ...` or MLIR's diagnostics on stderr; never a half-written file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from alcop_mlir.tools import command_line, opt_flags


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    return command_line.run_command(lambda: _run(given))


def _run(arguments: Sequence[str]) -> int:
    line = opt_flags.parse(arguments)
    if line.version:
        print(command_line.version_text("alcop-opt"))
        return 0
    # MLIR is loaded only from here on: 0.1 s.
    from alcop_mlir.tools import opt_run

    return opt_run.run(line)


if __name__ == "__main__":
    sys.exit(main())
