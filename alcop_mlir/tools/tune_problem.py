"""The matrix product of an MLIR file, as the tuner sees it.

It is looked for by the passes that find it when a file is compiled, so that records are
kept under the key by which alcop-select-schedule looks for them.
"""

from __future__ import annotations

from alcop_mlir import diagnostics
from alcop_mlir.analysis.host.host_function import host_functions
from alcop_mlir.compilation.inputs import Input
from alcop_mlir.errors import ConfigError
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.named import steps_to_contractions
from alcop_mlir.transforms.linalg.select_schedule import marked_contractions, problem_of
from alcop_mlir.tuning.problem import Problem


def file_problem(source: Input, name: str, allow_tf32: bool = False) -> Problem:
    """The one product in `source`; ConfigError where there is none, or another number.

    name: of the file, for messages
    allow_tf32: whether f32 is rounded to tf32; else products of it have no schedule
    """
    module = source.module.operation.clone()
    with diagnostics.collect() as remarks:
        run_pipeline(
            module, f"builtin.module({','.join(steps_to_contractions(allow_tf32))})"
        )
    found = [
        product
        for func in host_functions(module)
        for product in marked_contractions(func)
    ]
    if len(found) != 1:
        why = f": {remarks[0].message}" if remarks and not found else ""
        raise ConfigError(
            f"'{name}' computes {len(found) or 'no'} matrix products that can be "
            f"tuned, expected one{why}"
        )
    problem = problem_of(found[0])
    if problem is None:
        raise ConfigError(
            f"'{name}' has a size that is 0 or known at run time only, or factors of "
            "other types than memory holds: no model knows these"
        )
    return problem
