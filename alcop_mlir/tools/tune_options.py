"""The options of alcop-tune."""

from __future__ import annotations

import os
from pathlib import Path

from alcop_mlir.target import target_names
from alcop_mlir.tools.command_line import Parser, add_variants, count, positive, sizes

TOOL = "alcop-tune"
COMMANDS = ("explain", "report", "worker")
LOCAL = "local"  # the pool of this machine
_CORES = os.cpu_count() or 1
_ABOUT = {
    "": "Find the schedules with which contractions run fastest. See also "
    "`alcop-tune explain --help`, and likewise of `report` and `worker`.",
    "explain": "Show which schedule is chosen for a contraction, and why.",
    "worker": "Compile and measure on this machine for the searches of a pool, until "
    "Ctrl-C; one worker for each GPU.",
    "report": "Draw the records: best so far, predicted and measured time, latency.",
}


def parser(command: str) -> Parser:
    """The parser of a command, or "": search, export, measure, import."""
    parser = Parser(f"{TOOL} {command}".strip(), _ABOUT[command])
    add = parser.add_argument
    if command == "worker":
        add("pool", metavar="ADDRESS", help="of the scheduler, as tls://host:8786")
        add("--device", default="auto", metavar="NAME", help="cuda or simulated")
        add("--workers", type=positive, default=_CORES, metavar="N", help="compilers")
        _add_pool_options(parser)
        return parser
    if command == "report":
        add("-o", dest="output", default="report", metavar="DIR", help="default report")
    else:
        add("file", nargs="?", help="MLIR file; explain takes one contraction")
        add("--target", metavar="GPU", help=f"{', '.join(target_names())}")
        add("--allow-tf32", action="store_true", help="tune contractions of f32, too")
        add("--space", default="small", metavar="NAME", help="small (default) or full")
    add("--records", type=Path, metavar="FILE", help="default: in the user's cache")
    if command != "report":
        about = {
            "": "cuda, simulated, or auto",
            "explain": "whose records decide: cuda as when compiling, or simulated",
        }
        add("--device", default="auto", metavar="NAME", help=about[command])
    if command == "explain":
        about = "for those that are known at run time only: which variant runs, and why"
        add("--sizes", type=sizes, metavar="M=N,...", help=about)
        add_variants(parser)
    if not command:
        _add_search_options(parser)
    return parser


def _add_search_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--budget", default="64", metavar="N", help="trials, or seconds as in 120s")
    add("--strategy", default="hybrid", metavar="NAME", help="how to search")
    add("--seed", type=count, default=0, metavar="N", help="same seed, same proposals")
    add("--workers", type=positive, default=_CORES, metavar="N", help="compilers")
    add("--time-limit", type=positive, default=120, metavar="SECONDS", help="each")
    add("--repeat", type=positive, default=50, metavar="N", help="launches to time")
    add("--export", dest="to_export", type=Path, metavar="FILE.zip")
    add("--measure", dest="to_measure", type=Path, metavar="FILE.zip")
    add("--import", dest="to_import", type=Path, metavar="FILE.jsonl")
    add("-o", dest="output", type=Path, metavar="FILE.jsonl", help="of --measure")
    about = "measure on all GPUs of this machine, or on the pool of a Dask scheduler"
    add("--pool", nargs="?", const=LOCAL, metavar="ADDRESS", help=about)
    _add_pool_options(parser)


def _add_pool_options(parser: Parser) -> None:
    add = parser.add_argument
    about = "certificates: ca.pem, cert.pem, key.pem"
    add("--pool-tls", type=Path, metavar="DIR", help=about)
    about = "talk to another machine without certificates"
    add("--pool-insecure", action="store_true", help=about)
    about = "workers on this machine with --device simulated; default 1"
    add("--simulated-devices", type=positive, default=1, metavar="N", help=about)
