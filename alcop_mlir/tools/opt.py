"""alcop-opt: mlir-opt with our passes; see `alcop-opt --help`.

Reads a file or stdin, runs passes, prints the result. Exit status 0, or 1 with one line
`error: ...` or MLIR's diagnostics on stderr; never a half-written file.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from alcop_mlir.errors import AlcopError
from alcop_mlir.tools import opt_flags


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `alcop-opt ... | head`
    try:
        line = opt_flags.parse(sys.argv[1:] if arguments is None else arguments)
        if line.version:
            from alcop_mlir.tools.version import version_text

            print(version_text("alcop-opt"))
            return 0
        # MLIR is loaded only from here on: 0.1 s.
        from alcop_mlir.tools import opt_run

        return opt_run.run(line)
    except AlcopError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
