"""The named pipelines, one line a step."""

from __future__ import annotations

from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Configured, option
from alcop_mlir.pipelines.pipeline_text import with_options
from alcop_mlir.variants import DEFAULT_VARIANTS


@frozen
class NamedPipeline(Configured):
    """Base of the named pipelines; the fields are the options, as for passes.

    A named pipeline runs on a module, and is used in a pipeline string like a pass.
    """

    kind = "pipeline"

    def steps(self) -> tuple[str, ...]:
        """The steps that it runs, as elements of a `builtin.module(...)` pipeline."""
        raise NotImplementedError(f"{type(self).__name__}.steps")


@frozen
class AlcopCompile(NamedPipeline):
    """From linalg on tensors or memrefs to kernels in the llvm and nvvm dialects."""

    name = "alcop-compile"

    target: str = option("sm_80", "the GPU to compile for")
    schedule: str = option("", "tile sizes and stages; chosen where left out")
    allow_tf32: bool = option(False, "compile contractions of f32, rounded to tf32")
    inline_constants: bool = option(False, "keep constants in the code of kernels")
    variants: int = option(DEFAULT_VARIANTS, "most kernels of one with open sizes")
    chain_tiles: tuple[int, ...] = option(
        (), "rows of a warp, warps, columns, parts of all chains; or chosen"
    )

    def steps(self) -> tuple[str, ...]:
        """Bufferize, tile and pipeline each function, outline, lower."""
        on_functions = (
            with_options(
                "alcop-select-schedule",
                schedule=self.schedule,
                target=self.target,
                variants=self.variants,
            ),
            # The launcher refuses arguments that overlap where one is written.
            with_options("alcop-add-variants", assume_noalias_args=True),
            "alcop-split-k",
            with_options("alcop-merge-elementwise", assume_noalias_args=True),
            with_options("alcop-fuse-elementwise", assume_noalias_args=True),
            "alcop-tile-to-blocks",
            with_options("alcop-merge-paddings", assume_noalias_args=True),
            # Of what no contraction computes.
            with_options("alcop-launch-rows", target=self.target),
            "alcop-launch-loops",
            "alcop-sink-loads",
            # Before planning: loads of threads can be fetched, copies of tiles cannot.
            "alcop-stage-copies",
            # Planning compares addresses and trip counts: constants must be folded, and
            # equal values be the same value.
            "canonicalize",
            "cse",
        )
        on_launches = (
            # While loops are whole: totals do not depend on stages.
            "alcop-defer-totals",
            with_options("alcop-make-persistent", target=self.target),
            with_options("alcop-plan-pipelines", target=self.target),
            "alcop-multi-buffer",
            "alcop-specialize-warps",
            "alcop-expand-pipelines",
            "canonicalize",
            "cse",
            # Counts commit groups, so nothing may move or merge them afterwards.
            "alcop-place-waits",
            with_options("alcop-store-tiles", target=self.target),
            "alcop-distribute-copies",
            "alcop-lower-mma",
            "alcop-lower-rows",
            # All accesses of shared memory are there.
            "alcop-share-buffers",
            # The swizzle permutes indices into the buffers themselves, not into views.
            # Through collapsed dimensions these would be divisions.
            "alcop-reinterpret-shapes",
            "fold-memref-alias-ops",
            "alcop-swizzle-shared",
            # After the swizzle: with constant slots its arithmetic folds away.
            "alcop-unroll-steady-state",
            "canonicalize",
            "cse",
            # What copies under a predicate is known now.
            with_options("alcop-drop-last-waits", assume_noalias_args=True),
        )
        return (
            *steps_to_contractions(self.allow_tf32, self.target, self.chain_tiles),
            f"func.func({','.join(on_functions)})",
            # From here on the work is done once for all launches that are equal.
            "alcop-merge-launches",
            f"func.func({','.join(on_launches)})",
            with_options(
                "alcop-outline-kernels",
                inline_constants=self.inline_constants or None,
            ),
            "alcop-merge-kernels",
            "alcop-carry-addresses",
            "alcop-separate-iterations",
            with_options("alcop-lower-to-nvvm", target=self.target),
        )


# Programs on tensors, as frontends export them. References are of a program as given,
# doubles and all, but for numbers, which are arrays then. What nothing uses goes early,
# so that it need not be changed; dimensions, as tensors that are widened have them too.
# Canonicalize then cancels transposes. Those of matrices are folded before weights are
# prepared, as they cost nothing.
PREPARE = (
    "alcop-box-scalars",
    "func.func(alcop-narrow-doubles,alcop-decompose-softmax,alcop-split-zero-points,"
    "alcop-drop-unused-results,"
    "alcop-drop-unit-dimensions,canonicalize,cse,alcop-sink-extensions,canonicalize,"
    "alcop-propagate-layouts,canonicalize,cse,alcop-fold-concats,canonicalize,"
    "alcop-sink-transposes,canonicalize,"
    "alcop-fold-paddings,alcop-widen-totals,alcop-fill-channels,alcop-fold-transposes,"
    "alcop-sink-unpacking,alcop-sink-reshapes,canonicalize,cse,"
    "alcop-join-contractions,canonicalize,cse,alcop-pair-columns,"
    "canonicalize,alcop-join-slices,canonicalize)",
    "alcop-prepare-weights",
    # Of what each call computes, when all transposes are as few as they will be.
    "func.func(alcop-group-chains,canonicalize,cse,alcop-inline-gathered,"
    "alcop-inline-elementwise,"
    "canonicalize,cse)",
)


_TO_MEMREFS = (
    "func.func(alcop-update-arguments,alcop-fill-constants,alcop-generalize-gathers,"
    "alcop-separate-empties,alcop-protect-arguments)",
    "eliminate-empty-tensors",
    "one-shot-bufferize{bufferize-function-boundaries=true "
    "function-boundary-type-conversion=identity-layout-map}",
)


def bufferize(target: str, chain_tiles: tuple[int, ...] = ()) -> tuple[str, ...]:
    """Steps from tensors to memrefs; chains become tile code for this target.

    Results become output arguments at the end of the list.

    chain_tiles: see `AlcopCompile`
    """
    tile_chains = with_options(
        "alcop-tile-chains",
        target=target,
        tiles=chain_tiles[:3] or None,
        parts=chain_tiles[3] if len(chain_tiles) > 3 else None,
    )
    return (
        *_TO_MEMREFS,
        # At once: what is between the ops of a chain is never made.
        f"func.func({tile_chains},alcop-place-results,alcop-separate-results)",
        "buffer-results-to-out-params{hoist-static-allocs=true "
        "hoist-dynamic-allocs=true modify-public-functions=true}",
    )


def steps_to_chains() -> tuple[str, ...]:
    """Steps from a module as given to one whose chains are regions on memrefs."""
    return (*PREPARE, *_TO_MEMREFS)


def steps_to_contractions(
    allow_tf32: bool, target: str = "sm_80", chain_tiles: tuple[int, ...] = ()
) -> tuple[str, ...]:
    """Steps from a module as given to one whose contractions are marked."""
    on_convolutions = (
        # The launcher refuses arguments that overlap where one is written.
        with_options("alcop-split-phases", assume_noalias_args=True),
        with_options(
            "alcop-raise-convolutions", allow_tf32=allow_tf32, assume_noalias_args=True
        ),
    )
    on_functions = (
        with_options("alcop-separate-gathers", allow_tf32=allow_tf32),
        # Would merge what is padded with the copy that pads it.
        with_options("alcop-merge-elementwise", assume_noalias_args=True),
        with_options(
            "alcop-fuse-producers", assume_noalias_args=True, allow_tf32=allow_tf32
        ),
        "alcop-collapse-loops",
        with_options(
            "alcop-raise-gathers", allow_tf32=allow_tf32, assume_noalias_args=True
        ),
        "alcop-collapse-elementwise",
        with_options(
            "alcop-raise-contractions",
            allow_tf32=allow_tf32,
            assume_noalias_args=True,
            target=target,
        ),
    )
    return (
        *PREPARE,
        *bufferize(target, chain_tiles),
        "alcop-drop-offsets",
        f"func.func(alcop-check-views,{','.join(on_convolutions)})",
        # Of the copies that were made of filters, too.
        "alcop-fold-constants",
        f"func.func({','.join(on_functions)})",
    )


@frozen
class AlcopPipeline(NamedPipeline):
    """Pipelines the loops of kernels that others wrote, at any level of the module.

    What is not copied in a pipeline is made asynchronous where it is.
    """

    name = "alcop-pipeline"

    target: str = option("sm_80", "the GPU whose shared memory the slots must fit")
    stages: tuple[int, ...] = option((), "shared, register stages; default: a model's")
    assume_noalias_args: bool = option(False, "memref arguments never overlap")
    tail: str = option("predicated", "at a loop's end: predicated, or wrap around")
    version_loops: bool = option(False, "two versions of loops whose memrefs may alias")

    def steps(self) -> tuple[str, ...]:
        """Prepare, plan, give slots, expand, place waits."""
        noalias = self.assume_noalias_args
        return (
            # What threads keep on their stacks is made values.
            "sroa",
            "mem2reg",
            "alcop-raise-barriers",
            "alcop-normalize-loops",
            # Compare addresses, as planning does, see AlcopCompile.
            "canonicalize",
            "cse",
            "alcop-separate-views",
            with_options("alcop-separate-buffers", target=self.target),
            "alcop-fold-slots",
            "canonicalize",
            "cse",
            # Canonicalize would merge what is split.
            "alcop-split-guards",
            *(("alcop-version-loops",) if self.version_loops else ()),
            with_options(
                "alcop-plan-pipelines",
                target=self.target,
                stages=self.stages or None,
                assume_noalias_args=noalias,
                tail=self.tail,
            ),
            "alcop-multi-buffer",
            "alcop-specialize-warps",
            "alcop-expand-pipelines",
            "canonicalize",
            "cse",
            "alcop-place-waits",
            with_options("alcop-make-async", assume_noalias_args=noalias),
        )


NAMED_PIPELINES: tuple[type[NamedPipeline], ...] = (AlcopCompile, AlcopPipeline)


def find_named_pipeline(name: str) -> type[NamedPipeline] | None:
    """The named pipeline of ours, or None."""
    return next((p for p in NAMED_PIPELINES if p.name == name), None)
