"""The chains of an MLIR file, such as attention, with the tiles that they get."""

from __future__ import annotations

from dataclasses import dataclass

from alcop_mlir import diagnostics
from alcop_mlir.analysis.host.host_function import host_functions
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.compilation.inputs import Input
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.named import steps_to_chains
from alcop_mlir.target import Target
from alcop_mlir.transforms.chains.tiled_chain import chain_types, complete, read_chain
from alcop_mlir.tuning.chain_schedule import problem_of
from alcop_mlir.tuning.fused.chain_problem import ChainSizes, ChainTiles
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.selection import Chooser


@dataclass(frozen=True)
class FoundChain:
    """A chain of a program.

    problem: that records are of; None where a size is known at run time only
    """

    sizes: ChainSizes
    tiles: ChainTiles
    problem: Problem | None


def find_chains(
    source: Input, target: Target, chooser: Chooser | None = None
) -> list[FoundChain]:
    """The chains, in the order of the program.

    chooser: of the records that tiles are chosen by; None leaves the model only
    """
    records = None if chooser is None else lambda: chooser
    module = source.module.operation.clone()
    with diagnostics.collect(), module.context:
        run_pipeline(module, f"builtin.module({','.join(steps_to_chains())})")
        regions = [
            region
            for function in host_functions(module)
            for region in walk(function, "scf.execute_region")
        ]
        for region in regions:
            complete(region)
        found = [read_chain(region, target, chooser=records) for region in regions]
        return [
            FoundChain(
                one.sizes, one.tiles, problem_of(one.sizes, chain_types(one.steps))
            )
            for one in found
            if one is not None
        ]
