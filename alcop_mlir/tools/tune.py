"""alcop-tune: find the schedules with which contractions run fastest.

    alcop-tune FILE.mlir --budget 64         search, and record what was measured
    alcop-tune MODEL.mlir --budget 500       of all contractions of a program
    alcop-tune MODEL.mlir --pool             on all GPUs of this machine at once
    alcop-tune MODEL.mlir --pool tls://host:8786 --pool-tls DIR
                                             on those of a pool of machines
    alcop-tune worker tls://host:8786 --pool-tls DIR
                                             of which this machine is one
    alcop-tune explain FILE.mlir             which schedule is taken, and why
    alcop-tune explain FILE.mlir --sizes M=17,N=4096,K=4096
                                             of several kernels, which one runs
    alcop-tune report -o DIR                 pictures of what is recorded
    alcop-tune FILE.mlir --export C.zip      compile candidates here, then
    alcop-tune --measure C.zip -o R.jsonl    measure them where the GPU is, then
    alcop-tune --import R.jsonl              keep the records here

Exit status 0; 1 with one line `error: ...` on stderr; 130 after Ctrl-C, which keeps
all measurements: the same command continues from there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from alcop_mlir.tools import command_line
from alcop_mlir.tools.tune_options import COMMANDS, parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return command_line.run_command(lambda: _run(given))


def _run(arguments: list[str]) -> int:
    command = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    given = parser(command).parse_args(arguments[bool(command) :])
    # NumPy and the tuner are loaded only from here on.
    from alcop_mlir.tools import tune_run

    return tune_run.run(command, given)


if __name__ == "__main__":
    sys.exit(main())
