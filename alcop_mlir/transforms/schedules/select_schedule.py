"""Choose tile sizes and stages for each contraction.

Before:  linalg.matmul {alcop.contraction = ...}
After:   linalg.matmul {alcop.contraction = ..., alcop.schedule = #alcop.schedule<{
             block = [128, 128, 32], stages = [4, 2], warp = [64, 64]}>,
             alcop.schedule_source = "default"}

The schedule is the first that there is of:

1. the option `schedule`, in the text form of `Schedule`; it must fit the target and the
   inputs' type, else the pass fails. What it leaves out of tiles and stages is as in
   the first that fits of what 3 and 4 choose, best first;
2. an `alcop.schedule` that the op has already; as the option;
3. the fastest record of this contraction on the GPU that is compiled for
   (docs/tuning.md), else the best by the learned or the analytical model; not with
   `model=false`, nor where a size is known at run time only;
4. the default: of a list of tiles the first that hardly exceeds C and gives every SM a
   block, with the stages that fit (`default_schedule.py` has the rules).

Where an op reads interleaved columns of the result (`interleaved_columns.py`), what is
chosen is the best of which a warp has all columns that it reads, with K in one part.

With `variants` above 1, a contraction with a size that is known at run time only, or a
distance of rows of A or B, has several schedules, and for which sizes and distances
each is (`alcop_mlir/variants.py`):

After:   linalg.matmul {alcop.contraction = ..., alcop.variants = [
             {row_bytes = 16, schedule = {block = [64, 128, 32], ...}, source = ...,
              limits = [{loops = "mn", most = 262144}]}, ..., {schedule = {...}, ...}]}

They are those that lose least over the sizes to be expected, by the analytical model:
from 1 on, or as arguments say (`alcop.size_range = [[1, 64], [4096, 4096]]`, the least
and the largest size of each dimension). That is no promise: other sizes run as well. An
empty range is an error. Where no model covers the contraction, there is a default for
aligned rows and one for all. One that is given is that of both.

On a target with wgmma records and models are of both engines, and the default is the
best for wgmma by the analytical model (`warpgroup_schedule.py`). Variants for sizes and
rows that tensor maps and tiles fit come before those of mma.sync. A remark says why
wgmma does not multiply, or sizes that may come have no clusters.

Runs after alcop-raise-contractions, which marks the contractions, and before
alcop-split-k and alcop-tile-to-blocks, which carry the schedule out. Reads
`alcop.contraction` and `alcop.size_range`. Writes `alcop.schedule`, and in
`alcop.schedule_source` what has decided; alcop-outline-kernels erases both; or
`alcop.variants`, and leaves ops as they are that have these.
"""

from __future__ import annotations

from functools import cache, partial

from alcop_mlir import diagnostics, variants
from alcop_mlir.analysis.ir.size_ranges import check_size_ranges
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.dialects.values import to_attribute
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.schedule import Partial
from alcop_mlir.target import DEFAULT_TARGET, find_target
from alcop_mlir.transforms.schedules.compiler_chooser import compiler_chooser
from alcop_mlir.transforms.schedules.schedule_decision import (
    decide,
    marked_contractions,
)
from alcop_mlir.transforms.schedules.schedule_variants import (
    decide_variants,
    why_no_clusters,
    why_not_by_wgmma,
)
from alcop_mlir.variants import DEFAULT_VARIANTS, ScheduleVariant


@frozen
class SelectSchedule(Pass):
    name = "alcop-select-schedule"
    anchor = "func.func"

    target: str = option(DEFAULT_TARGET, "GPU to choose for, such as sm_80")
    schedule: str = option("", "schedule for all contractions, instead of choosing")
    model: bool = option(True, "choose by records and models; else a fixed default")
    variants: int = option(DEFAULT_VARIANTS, "most schedules of one with open sizes")

    def __post_init__(self) -> None:
        find_target(self.target)
        if self.schedule:
            Partial.parse(self.schedule)
        variants.check_most(self.variants)

    def run(self, op: ir.Operation) -> None:
        check_size_ranges(op)
        target = find_target(self.target)
        asked = Partial.parse(self.schedule) if self.schedule else None
        chooser = cache(partial(compiler_chooser, op, target)) if self.model else None
        for contraction in marked_contractions(op):
            if alcop.VARIANTS in contraction.op.attributes:
                continue
            if contraction.has_variants and self.variants > 1:
                most = self.variants
                _put(
                    contraction,
                    decide_variants(contraction, target, asked, chooser, most),
                )
                for why in (why_not_by_wgmma, why_no_clusters):
                    note = why(contraction, target, asked)
                    if note is not None:
                        diagnostics.remark(contraction.op, note)
                continue
            decision = decide(contraction, target, asked, chooser)
            for note in decision.notes:
                diagnostics.remark(contraction.op, note)
            schedule = decision.schedule.to_dict()
            alcop.put_schedule(contraction.op, schedule, decision.source)


def _put(contraction: Contraction, found: tuple[ScheduleVariant, ...]) -> None:
    """Write variants on a contraction; a single one as its schedule."""
    if len(found) == 1:
        schedule = found[0].schedule.to_dict()
        alcop.put_schedule(contraction.op, schedule, found[0].source)
        return
    alcop.drop(contraction.op, alcop.ScheduleAttr)
    written = to_attribute(variants.to_list(found))
    contraction.op.attributes[alcop.VARIANTS] = written
