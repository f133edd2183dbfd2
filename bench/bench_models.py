"""Whole models from torch: kernels, tensor cores, bytes, seconds, size, errors.

    python bench/bench_models.py [--small [--run]] [--types f16,bf16,f32]
                                 [--batch N,...] [--tokens N,...] [--by-kernel]
                                 [--published]
                                 [MODEL or FILE ...]
    python bench/bench_models.py --scale

No GPU is needed, but the extra `torch` for names of models (default: all of them), as
published: one image of 224x224, 128 tokens, or as many images or sequences as `--batch`
and tokens in each as `--tokens` say. `--small` takes the sizes of
`examples/models/small.py`. FILE is a program that was exported before, as
`test/models/fixtures/mlp_f16.mlir`: then nothing of torch is needed.

`--run` runs small ones, and files with values beside them, on the emulator, in several
modes: when copies land, and in which order warps run. The error is the largest in any
of them, against torch in f64, relative to the largest element.

`--scale` compares BERT of 12 layers with that of 2, and prints the allowed seconds.

Bytes moved are those that each kernel reads and writes, once each, beside the fewest
that any could move (`moved_bytes.py`, `least_bytes.py`), and those of the best fusion,
where that was counted by hand (`fused_bytes.py`). `--by-kernel` lists them by kernel,
and how many are between kernels: read or written beyond the fewest. `--published` takes
the sizes of docs/performance.md: BERT's layer and two layers at 1 and 8 sequences of
128 and 512 tokens, GPT-2 and Llama at one of 1024, ResNet-50 at 1 and 16 images.
Seconds are CPU time, that of ptxas apart, and wall time. Prints a table in Markdown;
records go to bench/results/models.jsonl.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bench_compile import Cost, cost
from fused_bytes import fused_bytes
from least_bytes import least_bytes
from model_figures import Figures, figures
from model_runs import MODES, Values, stored_values, worst_error
from moved_bytes import Moved, moved_by_kernel
from records import store
from rich.console import Console
from rich.progress import track

from alcop_mlir import diagnostics, errors
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.compilation.inputs import Input
from alcop_mlir.errors import AlcopError, ConfigError, check_known
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.target import find_target

MODELS = (
    "mlp resnet18 resnet50 vgg16 bert_layer bert gpt2_block gpt2 llama_block llama_step"
).split()
WITHOUT_TOKENS = ("mlp", "resnet18", "resnet50", "vgg16", "llama_step")
TYPES = ("f16", "bf16", "f32")
# By names of models: numbers of sequences, or images, and tokens in each.
PUBLISHED = (
    (("bert_layer", "bert"), (1, 8), (128, 512)),
    (("gpt2_block", "gpt2", "llama_block"), (1,), (1024,)),
    (("resnet50",), (1, 16), (128,)),
)
SCALE = ("bert", "bert_12", "resnet18")
# CPU seconds, and how many times those, and the bytes, of 2 layers 12 may take.
ALLOWED = {"bert": 8.0, "resnet18": 20.0}
ALLOWED_RATIO = 1.5
HEADER = (
    "model", "type", "kernels", "once", "stored",
    "contractions", "kernels on tensor cores", "pipelined",
    "moved", "least", "fused", "workspace", "bundle",
    "compile s", "ptxas s", "wall s", "error", "modes",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A model, or a file, and the type of its floats; how many sequences, of what size.

    batch: images, or sequences of `tokens`; of models as published
    """

    name: str
    dtype: str
    small: bool
    batch: int = 1
    tokens: int = 128

    def loaded(self) -> tuple[Input, Values | None]:
        """The program, read or exported; and values to run it with, of small ones."""
        if self.is_file:
            return inputs.read_file(self.name), None
        errors.optional("torch", "exporting models needs PyTorch", "torch")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of torch's own code
            import model_exports

            text, values = model_exports.exported(**asdict(self))
        return inputs.read_text(text), values

    @property
    def is_file(self) -> bool:
        """Whether somebody has exported it before."""
        return self.name.endswith(".mlir")

    @property
    def title(self) -> str:
        """Its name, and its sizes where these are not the usual ones."""
        name, tokens = Path(self.name).stem, f" of {self.tokens}"
        if (self.batch, self.tokens) == (1, 128):
            return name
        return f"{name}, {self.batch}{'' if name in WITHOUT_TOKENS else tokens}"

    @property
    def fused(self) -> int | None:
        """Bytes of the best fusion, of elements of 16 bits."""
        if self.small or self.dtype == "f32":
            return None
        return fused_bytes(self.name, self.batch, self.tokens)


@dataclass(frozen=True)
class Compiled:
    """A program's bundle, what was said of it, what it took, and what it is.

    kernels: what each moves, in order
    least: bytes of global memory, see least_bytes.py
    error: see model_runs.py; None where it was not run
    """

    program: Program
    bundle: Bundle
    remarks: tuple[str, ...]
    cost: Cost
    figures: Figures
    kernels: tuple[Moved, ...]
    least: int
    error: float | None

    @property
    def moved(self) -> int:
        """Bytes of global memory, see moved_bytes.py."""
        return sum(one.bytes for one in self.kernels)

    @property
    def seconds(self) -> float:
        """Of CPU time, with ptxas."""
        return self.cost.own + self.cost.started

    def row(self) -> list[str]:
        """One line of the table."""
        found, program = self.figures, self.program
        fused = program.fused
        return [
            program.title,
            program.dtype,
            str(found.kernels),
            str(found.once),
            str(found.stored),
            "?" if found.contractions is None else str(found.contractions),
            str(found.on_tensor_cores),
            str(found.pipelined),
            f"{size(self.moved)}, {self.moved / self.least:.1f}x",
            size(self.least),
            "" if fused is None else f"{size(fused)}, {self.moved / fused:.2f}x",
            size(found.workspace),
            size(found.stored_bytes),
            f"{self.cost.own:.1f}",
            f"{self.cost.started:.1f}",
            f"{self.cost.wall:.1f}",
            *(
                ("", "")
                if self.error is None
                else (f"{self.error:.1e}", str(len(MODES)))
            ),
        ]

    def record(self) -> dict[str, Any]:
        """For bench/results."""
        figures = {**asdict(self.figures), "reasons": list(self.figures.reasons)}
        moved = {"moved": self.moved, "least": self.least, "error": self.error}
        moved["fused"] = self.program.fused
        return {**asdict(self.program), **asdict(self.cost), **figures, **moved}


def compiled(program: Program, target: str, runs: bool = False) -> Compiled:
    """Compile it, and run it if it is small; an AlcopError says why not."""
    source, values = program.loaded()
    # f32 runs on tensor cores as tf32 only.
    options = compiler.Options(find_target(target), allow_tf32=program.dtype == "f32")
    remarks, made = io.StringIO(), []
    with contextlib.redirect_stderr(remarks):
        spent = cost(lambda: made.append(compiler.compile_source(source, options)))
    (bundle,) = made
    said = tuple(dict.fromkeys(remarks.getvalue().splitlines()))
    with diagnostics.collect():
        kernels = moved_by_kernel(source, options, bundle.function().name)
    if program.is_file:
        values = stored_values(program.name, bundle.function())
    return Compiled(
        program,
        bundle,
        said,
        spent,
        figures(bundle, said),
        kernels,
        least_bytes(bundle.function()),
        worst_error(bundle, values) if runs and values is not None else None,
    )


def size(number: int) -> str:
    """Bytes as MB, or kB."""
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.0f} kB"


def programs(given: argparse.Namespace) -> Iterator[Program]:
    """All that are asked for."""
    if given.published:
        yield from published(given.models, given.types or TYPES)
        return
    names = given.models or (SCALE if given.scale else MODELS)
    types = given.types or (("f16",) if given.scale else TYPES)
    for name in names:
        if name.endswith(".mlir"):
            known = (dtype for dtype in TYPES if name.endswith(f"_{dtype}.mlir"))
            yield Program(name, next(known, ""), given.small)
        else:
            sizes = [(1, 128)] if given.small else product(given.batch, given.tokens)
            yield from (
                Program(name, dtype, given.small, batch, tokens)
                for batch, tokens in sizes
                for dtype in types
            )


def published(models: Collection[str], types: Sequence[str]) -> Iterator[Program]:
    """The models, or all if there are none, at the sizes that are published."""
    for names, batches, tokens in PUBLISHED:
        for name, *sizes, dtype in product(names, batches, tokens, types):
            if name in models or not models:
                yield Program(name, dtype, False, *sizes)


def heading() -> str:
    """The first two lines of a table in Markdown."""
    rule = ["---"] * 2 + ["---:"] * (len(HEADER) - 2)
    return f"{line(HEADER)}\n{line(rule)}"


def line(cells: Sequence[str]) -> str:
    """A row of the table."""
    return f"| {' | '.join(cells)} |"


def by_kernel(done: Compiled) -> Iterator[str]:
    """What each kernel reads and writes, how much of it no program needs to, and how
    often the least of the program its bytes are.
    """
    yield "kernel      read   written   between   of least"
    for number, one in enumerate(done.kernels, 1):
        columns = (one.read, one.written, one.bytes - one.least)
        sizes = " ".join(f"{size(column):>9}" for column in columns)
        share = one.bytes / done.least
        said = f"{one.name}, {one.blocks} blocks {one.schedule}".rstrip()
        yield f"{number:6} {sizes} {share:9.3f}x  {said}"


def scale(done: Sequence[Compiled]) -> Iterator[str]:
    """What the models may take, and how 12 layers compare with 2."""
    by_name = {one.program.name: one for one in done}
    for name, allowed in ALLOWED.items():
        if name in by_name:
            yield f"{name}: {by_name[name].seconds:.1f} s of CPU, allowed {allowed:.0f}"
    if {"bert", "bert_12"} <= by_name.keys():
        two, twelve = by_name["bert"], by_name["bert_12"]
        time = twelve.seconds / two.seconds
        stored = twelve.figures.stored_bytes / two.figures.stored_bytes
        yield (
            f"12 layers of BERT: {time:.2f} times the CPU time of 2, "
            f"{stored:.2f} times the bundle, allowed {ALLOWED_RATIO}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 1 if a model is not compiled."""
    given = parser().parse_args(arguments)
    done: list[Compiled] = []
    failed: list[str] = []
    console = Console(stderr=True)
    every = list(programs(given))
    print(heading())
    for program in track(every, "compiling", console=console, transient=True):
        try:
            done.append(compiled(program, given.target, given.run))
        except AlcopError as error:
            failed.append(f"{program.name} {program.dtype}: {error}")
        else:
            print(line(done[-1].row()), flush=True)
            for text in by_kernel(done[-1]) if given.by_kernel else ():
                print(text)
    for one in done:
        for reason in one.figures.reasons:
            print(f"{one.program.name} {one.program.dtype}: {reason}")
    for text in (*(scale(done) if given.scale else ()), *failed):
        print(text)
    print(f"records: {store('models', [one.record() for one in done])}")
    return 1 if failed else 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = f"{', '.join(MODELS)}, bert_12, or FILE.mlir"
    parser.add_argument("models", nargs="*", type=_model, metavar="MODEL", help=known)
    parser.add_argument("--small", action="store_true", help="sizes for the emulator")
    parser.add_argument("--run", action="store_true", help="small ones, emulated")
    parser.add_argument("--scale", action="store_true", help="12 layers against 2")
    about = f"of {', '.join(TYPES)}; f32 as tf32"
    parser.add_argument("--types", type=_types, metavar="T,...", help=about)
    parser.add_argument("--batch", type=_sizes, default=[1], metavar="N,...")
    parser.add_argument("--tokens", type=_sizes, default=[128], metavar="N,...")
    parser.add_argument("--by-kernel", action="store_true", help="bytes of each")
    parser.add_argument("--published", action="store_true", help="their sizes")
    parser.add_argument("--target", default="sm_80")
    return parser


def _model(text: str) -> str:
    if not text.endswith(".mlir"):
        _check("model", text, (*MODELS, "bert_12"))
    return text


def _types(text: str) -> list[str]:
    for one in text.split(","):
        _check("type", one, TYPES)
    return text.split(",")


def _sizes(text: str) -> list[int]:
    sizes = [int(one) if one.isdecimal() else 0 for one in text.split(",")]
    if 0 in sizes:
        raise argparse.ArgumentTypeError(f"got '{text}', expected numbers from 1 on")
    return sizes


def _check(what: str, name: str, known: Collection[str]) -> None:
    try:
        check_known(what, name, known)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
