"""The chains of an MLIR file, as attention, with the tiles that compiles give them."""

from __future__ import annotations

from alcop_mlir import diagnostics
from alcop_mlir.analysis.host.host_function import host_functions
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.compilation.inputs import Input
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.named import steps_to_chains
from alcop_mlir.target import Target
from alcop_mlir.transforms.chains.tiled_chain import read_chain
from alcop_mlir.tuning.fused.chain_problem import ChainSizes, ChainTiles


def find_chains(source: Input, target: Target) -> list[tuple[ChainSizes, ChainTiles]]:
    """Sizes and tiles of each chain, in the order of the program."""
    module = source.module.operation.clone()
    with diagnostics.collect():
        run_pipeline(module, f"builtin.module({','.join(steps_to_chains())})")
        found = [
            read_chain(region, target)
            for function in host_functions(module)
            for region in walk(function, "scf.execute_region")
        ]
    return [(one.sizes, one.tiles) for one in found if one is not None]
