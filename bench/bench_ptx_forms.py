"""How much of the PTX that ptxas takes for sm_80, sm_89 and sm_90a is translated.

usage: python bench/bench_ptx_forms.py [--families NAME,...] [--refused] [--every N]
                                       [--orders N] [--changed N]

Every form of the grammar in bench/ptx_forms.py is given to ptxas, and those that it
takes to the emulator, each in a kernel of its own. Prints a row for each family: forms
of the grammar, those that ptxas takes, those that the emulator translates. `--refused`
prints what the emulator says of the others. `--orders N` asks for N other orders of the
modifiers of each form that ptxas takes, and counts those instead. `--changed N` asks
for N forms with one modifier more, less, twice or another one, and lists those of which
ptxas and the emulator do not say the same. Needs the extra `ptxas`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

from ptx_forms import (
    FAMILIES,
    HEADER,
    OUT_OF_SCOPE,
    TEXTURE_FAMILIES,
    TEXTURES,
    Form,
    changed,
    forms,
    kernel,
    reordered,
)

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import prepare
from alcop_mlir.runtime.ptx import find_ptxas

TARGETS = ("sm_80", "sm_89", "sm_90a")  # each is asked for what those before refuse
VERSION = "9.0"
_PER_MODULE = 1500
_PER_KERNEL = 20
_BAD_LINE = re.compile(r"line (\d+); (?:error|fatal)")  # but for warnings


def text_of(given: Sequence[Form], target: str, per_kernel: int = _PER_KERNEL) -> str:
    """A module with the forms in order, so many to a kernel, each on its own line."""
    header = HEADER.format(version=VERSION, target=target)
    if any(form.family in TEXTURE_FAMILIES for form in given):
        header += TEXTURES
    chunks = [given[i : i + per_kernel] for i in range(0, len(given), per_kernel)]
    bodies = (
        kernel(f"k{i}", [form.text for form in chunk]) for i, chunk in enumerate(chunks)
    )
    return header + "".join(bodies)


def accepted(given: Sequence[Form], target: str, ptxas: Path) -> list[Form]:
    """The forms that ptxas takes for the target.

    It names every line with an error; what is left is tried again, until it passes. A
    module that it gives up on without naming a line is halved.
    """
    left = list(given)
    while left:
        text = text_of(left, target)
        bad = _bad_lines(text, target, ptxas)
        if bad is None:
            return left
        lines = text.splitlines()
        refused = {lines[number - 1] for number in bad}
        kept = [form for form in left if form.text not in refused]
        if len(kept) == len(left):
            if len(left) == 1:
                return []
            middle = len(left) // 2
            halves = left[:middle], left[middle:]
            return [one for half in halves for one in accepted(half, target, ptxas)]
        left = kept
    return left


def _bad_lines(text: str, target: str, ptxas: Path) -> list[int] | None:
    """The lines that ptxas finds fault with; None if it takes the module."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forms.ptx"
        path.write_text(text)
        options = [f"-arch={target}", "-O0", "-c", str(path), "-o", f"{path}.cubin"]
        done = subprocess.run([str(ptxas), *options], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return [int(number) for number in _BAD_LINE.findall(done.stderr)]


def all_accepted(given: Sequence[Form], ptxas: Path) -> dict[Form, str]:
    """The forms that ptxas takes, with the first target for which it does."""
    found: dict[Form, str] = {}
    for target in TARGETS:
        left = [form for form in given if form not in found]
        parts = [left[i : i + _PER_MODULE] for i in range(0, len(left), _PER_MODULE)]
        ask = partial(accepted, target=target, ptxas=ptxas)
        with ThreadPoolExecutor(2) as pool:
            for part in pool.map(ask, parts):
                found |= dict.fromkeys(part, target)
    return found


def orders(
    taken: dict[Form, str], count: int, ptxas: Path, seed: int = 0
) -> tuple[set[Form], dict[Form, str]]:
    """Other orders of the modifiers of forms; those that ptxas takes for the target."""
    generator = Random(seed)
    asked: dict[str, set[Form]] = {target: set() for target in TARGETS}
    for form, target in taken.items():
        for _ in range(count):
            other = reordered(form, generator)
            if other not in taken:
                asked[target].add(other)
    found: dict[Form, str] = {}
    for target, given in asked.items():
        left = sorted(given)
        for i in range(0, len(left), _PER_MODULE):
            part = accepted(left[i : i + _PER_MODULE], target, ptxas)
            found |= dict.fromkeys(part, target)
    return set().union(*asked.values()), found


def changes(
    taken: dict[Form, str], count: int, ptxas: Path, seed: int = 0
) -> tuple[dict[Form, str], set[Form]]:
    """So many changed forms with their targets, and which of them ptxas takes."""
    generator = Random(seed)
    by_name: dict[str, list[Form]] = {}
    for form in taken:
        by_name.setdefault(re.split(r"[. ;]", form.text)[0], []).append(form)
    names = sorted(by_name)
    asked: dict[Form, str] = {}
    while len(asked) < count:
        form = generator.choice(by_name[generator.choice(names)])
        other = changed(form, generator)
        if other not in taken:
            asked[other] = taken[form]
    found: set[Form] = set()
    for target in TARGETS:
        given = [form for form, wanted in asked.items() if wanted == target]
        for i in range(0, len(given), _PER_MODULE):
            found.update(accepted(given[i : i + _PER_MODULE], target, ptxas))
    return asked, found


def refusals(given: dict[Form, str]) -> Iterator[tuple[Form, str]]:
    """The forms that the emulator does not translate, with what it says of each."""
    for form, target in given.items():
        try:
            prepare(text_of([form], target))
        except EmulationError as error:
            yield form, str(error)


def differences(asked: dict[Form, str], found: set[Form]) -> str:
    """What only one of the two takes, and how many both take or refuse."""
    refused = {form for form, _ in refusals(asked)}
    ours = [form for form in asked if form not in found and form not in refused]
    theirs = [form for form in asked if form in found and form in refused]
    lines = [f"only the emulator takes {form.text}" for form in ours]
    lines += [f"only ptxas takes {form.text}" for form in theirs]
    same = len(asked) - len(lines)
    end = f"{len(asked)} changed forms, {len(found)} of which ptxas takes: both say"
    return "\n".join([*lines, f"{end} the same of {same}"])


def table(asked: Sequence[Form], taken: dict[Form, str], refused: set[Form]) -> str:
    """A row for each family, and the sum."""
    rows = [f"{'family':26}{'forms':>8}{'ptxas':>8}{'emulator':>10}"]
    for family in (*FAMILIES, ""):
        total, ours, lost = (
            sum(1 for form in part if not family or form.family == family)
            for part in (asked, taken, refused)
        )
        if total:
            share = f"{100 * (ours - lost) / max(ours, 1):.1f} %"
            if family in OUT_OF_SCOPE:
                share = "out of scope"
            counts = f"{total:>8}{ours:>8}{ours - lost:>10}"
            rows.append(f"{family or 'all':26}{counts}  {share}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="PTX forms that are translated")
    parser.add_argument("--families", default="", help="only these, by commas")
    parser.add_argument("--every", type=int, default=1, help="only each Nth form")
    parser.add_argument("--orders", type=int, default=0, help="of the modifiers")
    parser.add_argument("--changed", type=int, default=0, help="forms to change")
    parser.add_argument("--refused", action="store_true", help="list what is refused")
    options = parser.parse_args()
    ptxas = find_ptxas()
    if ptxas is None:
        sys.exit("needs ptxas: pip install nvidia-cuda-nvcc")
    wanted = options.families.split(",") if options.families else FAMILIES
    asked = [form for form in forms() if form.family in wanted][:: options.every]
    taken = all_accepted(asked, ptxas)
    if options.changed:
        print(differences(*changes(taken, options.changed, ptxas)))
        return
    if options.orders:
        others, taken = orders(taken, options.orders, ptxas)
        asked = list(others)
    said = dict(refusals(taken))
    if options.refused:
        for form, why in said.items():
            print(f"{form.text}\n    {why}")
    print(table(asked, taken, {*said}))
    by_target = Counter(taken.values())
    print(", ".join(f"{count} for {target}" for target, count in by_target.items()))


if __name__ == "__main__":
    main()
