"""Tries many random loops: `python test/fuzz/fuzz.py --programs 50000`.

What was tried is written to a file of lines, one per chunk of programs, so that a run
that was interrupted, or one that wants more, goes on where the last stopped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path

from attempts import Tally, try_cases

CHUNK = 50  # programs: seconds of one worker
PROGRESS_SECONDS = 30


def main(arguments: Sequence[str]) -> int:
    """Exit status: 1 if a program failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=50_000)
    parser.add_argument("--minutes", type=float, help="stop after so many")
    parser.add_argument("--jobs", type=int, default=2, help="0: in this process")
    parser.add_argument("--state", type=Path, default=Path("build/fuzz.jsonl"))
    options = parser.parse_args(arguments)
    options.state.parent.mkdir(parents=True, exist_ok=True)
    done = _read(options.state)
    total = Tally()
    for tally in done.values():
        total.add(tally)
    left = _left(done, options.programs)
    if done:
        print(f"{options.state}: {total.seen['cases']} programs were tried before")
    end = time.monotonic() + 60 * (options.minutes or 1e9)
    said = time.monotonic()
    with options.state.open("a", encoding="utf-8") as state:
        for chunk, tally in _tried(left, options.jobs, end):
            line = {"first": chunk.start, "count": len(chunk), **vars(tally)}
            print(json.dumps(line), file=state, flush=True)
            total.add(tally)
            if tally.wrong:
                print(tally.wrong)
            if time.monotonic() > said + PROGRESS_SECONDS:
                said = time.monotonic()
                print(f"{total.seen['cases']} of {options.programs}", flush=True)
    print("\n".join(total.lines()))
    return 1 if total.wrong else 0


def _left(done: dict[range, Tally], programs: int) -> Iterator[range]:
    """Chunks of what was not tried yet."""
    tried = {seed for chunk in done for seed in chunk}
    for first in range(0, programs, CHUNK):
        chunk = range(first, min(first + CHUNK, programs))
        seeds = [seed for seed in chunk if seed not in tried]
        if seeds:
            yield range(seeds[0], seeds[-1] + 1)


def _tried(
    chunks: Iterator[range], jobs: int, end: float
) -> Iterator[tuple[range, Tally]]:
    if jobs == 0:
        for chunk in chunks:
            yield chunk, try_cases(chunk)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        running = {}
        for chunk in chunks:
            running[pool.submit(try_cases, chunk)] = chunk
            if len(running) > jobs:
                yield from _finished(running)
            if time.monotonic() > end:
                break
        while running:
            yield from _finished(running)


def _finished(running: dict) -> Iterator[tuple[range, Tally]]:
    ready, _ = wait(running, return_when=FIRST_COMPLETED)
    for one in ready:
        yield running.pop(one), one.result()


def _read(state: Path) -> dict[range, Tally]:
    """What was tried, by chunk; a line that was cut off is not counted."""
    found: dict[range, Tally] = {}
    lines = state.read_text(encoding="utf-8").splitlines() if state.exists() else []
    for line in lines:
        try:
            read = json.loads(line)
        except json.JSONDecodeError:
            continue
        first = read["first"]
        found[range(first, first + read["count"])] = Tally(
            Counter(read["seen"]), read["seconds"], read["wrong"]
        )
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
