"""Bundles by graph: what was compiled once is loaded, in this process and later ones.

A bundle is kept as `torch/KEY.zip` in the cache directory (`ALCOP_CACHE_DIR`). KEY is a
hash of the graph, of the options, and of what compiles: our sources, versions of torch
and torch-mlir. Nothing is ever deleted there: the user may, at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
from functools import cache
from importlib import metadata
from pathlib import Path

import torch

import alcop_mlir
from alcop_mlir import knobs
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import CompileError, ConfigError
from alcop_mlir.runtime import bundle as bundles
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.torch.graphs import Graph

_log = logging.getLogger("alcop_mlir.torch")


def compiled(graph: Graph, options: compiler.Options, keep: bool) -> Bundle:
    """The bundle of `graph`: from the cache where `keep`, else compiled.

    Remarks of passes are logged to "alcop_mlir.torch". Raises AlcopErrors.
    """
    if not keep:
        return _compiled(graph, options)
    path = knobs.cache_dir() / "torch" / f"{key(graph, options)}.zip"
    with contextlib.suppress(ConfigError):  # not there, damaged, of an older schema
        return bundles.load(path)
    made = _compiled(graph, options)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        bundles.save(made, path)
    except (OSError, ConfigError) as error:
        _log.warning("not cached: %s", error)
    return made


def key(graph: Graph, options: compiler.Options) -> str:
    """A hash of all that decides what the bundle holds."""
    made_from = [options.pipeline(), *graph.signature(), *_versions()]
    return hashlib.sha256("\n".join(made_from).encode()).hexdigest()


def _compiled(graph: Graph, options: compiler.Options) -> Bundle:
    remarks = io.StringIO()
    source = inputs.read(graph.text_of_nodes())
    try:
        with contextlib.redirect_stderr(remarks):
            return compiler.compile_source(source, options)
    except CompileError as error:
        raise CompileError(graph.with_names(str(error))) from None
    finally:
        for line in remarks.getvalue().splitlines():
            _log.info("%s", graph.with_names(line))


@cache
def _versions() -> tuple[str, ...]:
    """Of this package by its sources, which change more often than its version."""
    digest = hashlib.sha256()
    for path in sorted(Path(alcop_mlir.__file__).parent.rglob("*")):
        if path.suffix in (".py", ".mlir", ".txt", ".json") and path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest(), torch.__version__, metadata.version("torch-mlir")
