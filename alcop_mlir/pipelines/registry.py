"""All passes by name.

A pass is imported when its name is first used: a tool starts without it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from alcop_mlir.errors import ConfigError
from alcop_mlir.passes.base import Pass
from alcop_mlir.pipelines import upstream
from alcop_mlir.pipelines.named import NAMED_PIPELINES

# Name of a pass: module below alcop_mlir.transforms, and class. In the order in which
# alcop-compile runs them. Those from alcop-separate-views to planning are for pipelines
# of others, as is alcop-lower-gathers; the check is for alcop-opt and tests.
PASSES = {
    "alcop-box-scalars": "tensors.box_scalars:BoxScalars",
    "alcop-narrow-doubles": "tensors.narrow_doubles:NarrowDoubles",
    "alcop-decompose-softmax": "tensors.decompose_softmax:DecomposeSoftmax",
    "alcop-split-zero-points": "tensors.split_zero_points:SplitZeroPoints",
    "alcop-drop-unused-results": "tensors.drop_unused_results:DropUnusedResults",
    "alcop-drop-unit-dimensions": "tensors.drop_unit_dimensions:DropUnitDimensions",
    "alcop-sink-extensions": "tensors.sink_extensions:SinkExtensions",
    "alcop-group-chains": "chains.group_chains:GroupChains",
    "alcop-inline-gathered": "tensors.inline_gathered:InlineGathered",
    "alcop-inline-elementwise": "tensors.inline_elementwise:InlineElementwise",
    "alcop-sink-unpacking": "tensors.sink_unpacking:SinkUnpacking",
    "alcop-sink-reshapes": "tensors.sink_reshapes:SinkReshapes",
    "alcop-sink-transposes": "tensors.sink_transposes:SinkTransposes",
    "alcop-join-contractions": "tensors.join_contractions:JoinContractions",
    "alcop-pair-columns": "tensors.pair_columns:PairColumns",
    "alcop-join-slices": "tensors.join_slices:JoinSlices",
    "alcop-widen-totals": "tensors.widen_totals:WidenTotals",
    "alcop-fill-channels": "tensors.fill_channels:FillChannels",
    "alcop-fold-paddings": "tensors.fold_paddings:FoldPaddings",
    "alcop-fold-concats": "tensors.fold_concats:FoldConcats",
    "alcop-propagate-layouts": "tensors.propagate_layouts:PropagateLayouts",
    "alcop-update-arguments": "tensors.update_arguments:UpdateArguments",
    "alcop-prepare-weights": "tensors.prepare_weights:PrepareWeights",
    "alcop-fill-constants": "linalg.fill_constants:FillConstants",
    "alcop-fold-transposes": "linalg.fold_transposes:FoldTransposes",
    "alcop-generalize-gathers": "linalg.generalize_gathers:GeneralizeGathers",
    "alcop-separate-empties": "linalg.separate_empties:SeparateEmpties",
    "alcop-protect-arguments": "linalg.protect_arguments:ProtectArguments",
    "alcop-tile-chains": "chains.tile_chains:TileChains",
    "alcop-place-results": "linalg.place_results:PlaceResults",
    "alcop-separate-results": "linalg.separate_results:SeparateResults",
    "alcop-drop-offsets": "linalg.drop_offsets:DropOffsets",
    "alcop-check-views": "tiling.check_views:CheckViews",
    "alcop-split-phases": "linalg.split_phases:SplitPhases",
    "alcop-raise-convolutions": "linalg.raise_convolutions:RaiseConvolutions",
    "alcop-fold-constants": "linalg.fold_constants:FoldConstants",
    "alcop-separate-gathers": "tiling.separate_gathers:SeparateGathers",
    "alcop-merge-elementwise": "linalg.merge_elementwise:MergeElementwise",
    "alcop-fuse-producers": "linalg.fuse_producers:FuseProducers",
    "alcop-collapse-loops": "linalg.collapse_loops:CollapseLoops",
    "alcop-raise-gathers": "linalg.raise_gathers:RaiseGathers",
    "alcop-collapse-elementwise": "linalg.collapse_elementwise:CollapseElementwise",
    "alcop-raise-contractions": "linalg.raise_contractions:RaiseContractions",
    "alcop-select-schedule": "schedules.select_schedule:SelectSchedule",
    "alcop-add-variants": "tiling.add_variants:AddVariants",
    "alcop-split-k": "tiling.split_k:SplitK",
    "alcop-fuse-elementwise": "linalg.fuse_elementwise:FuseElementwise",
    "alcop-tile-to-blocks": "tiling.tile_to_blocks:TileToBlocks",
    "alcop-merge-paddings": "linalg.merge_paddings:MergePaddings",
    "alcop-launch-rows": "tiling.launch_rows:LaunchRows",
    "alcop-launch-loops": "tiling.launch_loops:LaunchLoops",
    "alcop-sink-loads": "tiling.sink_loads:SinkLoads",
    "alcop-stage-copies": "tensor_cores.stage_copies:StageCopies",
    "alcop-merge-launches": "kernels.merge_launches:MergeLaunches",
    "alcop-defer-totals": "tensor_cores.defer_totals:DeferTotals",
    "alcop-raise-barriers": "pipelining.raise_barriers:RaiseBarriers",
    "alcop-normalize-loops": "pipelining.normalize_loops:NormalizeLoops",
    "alcop-separate-views": "pipelining.separate_views:SeparateViews",
    "alcop-separate-buffers": "pipelining.separate_buffers:SeparateBuffers",
    "alcop-fold-slots": "pipelining.fold_slots:FoldSlots",
    "alcop-split-guards": "pipelining.split_guards:SplitGuards",
    "alcop-version-loops": "pipelining.version_loops:VersionLoops",
    "alcop-plan-pipelines": "pipelining.plan_pipelines:PlanPipelines",
    "alcop-multi-buffer": "pipelining.multi_buffer:MultiBuffer",
    "alcop-make-persistent": "roles.make_persistent:MakePersistent",
    "alcop-specialize-warps": "roles.specialize_warps:SpecializeWarps",
    "alcop-expand-pipelines": "pipelining.expand_pipelines:ExpandPipelines",
    "alcop-place-waits": "pipelining.place_waits:PlaceWaits",
    "alcop-make-async": "pipelining.make_async:MakeAsync",
    "alcop-store-tiles": "roles.store_tiles:StoreTiles",
    "alcop-distribute-copies": "tensor_cores.distribute_copies:DistributeCopies",
    "alcop-lower-gathers": "tensor_cores.lower_gathers:LowerGathers",
    "alcop-lower-mma": "tensor_cores.lower_mma:LowerMma",
    "alcop-lower-rows": "tensor_cores.lower_rows:LowerRows",
    "alcop-share-buffers": "tensor_cores.share_buffers:ShareBuffers",
    "alcop-reinterpret-shapes": "kernels.reinterpret_shapes:ReinterpretShapes",
    "alcop-swizzle-shared": "tensor_cores.swizzle_shared:SwizzleShared",
    "alcop-unroll-steady-state": "pipelining.unroll_steady_state:UnrollSteadyState",
    "alcop-drop-last-waits": "pipelining.drop_last_waits:DropLastWaits",
    "alcop-check-pipelines": "pipelining.check_pipelines:CheckPipelines",
    "alcop-outline-kernels": "kernels.outline_kernels:OutlineKernels",
    "alcop-merge-kernels": "kernels.merge_kernels:MergeKernels",
    "alcop-carry-addresses": "kernels.carry_addresses:CarryAddresses",
    "alcop-separate-iterations": "kernels.separate_iterations:SeparateIterations",
    "alcop-lower-to-nvvm": "kernels.lower_to_nvvm:LowerToNvvm",
}


@dataclass
class Registry:
    """Our passes and pipelines by name, and passes added by the user."""

    added: dict[str, type[Pass]] = field(default_factory=dict)

    def add(self, classes: Iterable[type[Pass]]) -> None:
        """Make `classes` known; ConfigError where a name is taken or an option wrong.

        Needs a current context, to ask for MLIR's own names.
        """
        for new in classes:
            if new.name in self.names() or upstream.find(new.name):
                raise ConfigError(f"pass name '{new.name}' is taken")
            new.options()
            self.added[new.name] = new

    def find_pass(self, name: str) -> type[Pass] | None:
        """The class of that name, imported if need be."""
        if name in PASSES:
            return _import_pass(name)
        return self.added.get(name)

    def passes(self) -> tuple[type[Pass], ...]:
        """All of them, ours first."""
        return (*map(_import_pass, PASSES), *self.added.values())

    def names(self) -> tuple[str, ...]:
        """Names of all passes and pipelines."""
        return (*PASSES, *self.added, *(pipeline.name for pipeline in NAMED_PIPELINES))


def _import_pass(name: str) -> type[Pass]:
    module, _, pass_class = PASSES[name].partition(":")
    return getattr(
        importlib.import_module(f"alcop_mlir.transforms.{module}"), pass_class
    )
