"""The contraction of an MLIR file, as a `Problem` of the tuner.

It is found by the passes that find it when a file is compiled, so that records have the
key by which alcop-select-schedule looks them up.
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
    """The only contraction in `source`; ConfigError where there is none, or several.

    name: of the file, for messages
    allow_tf32: whether f32 is rounded to tf32; else contractions of it have no schedule
    """
    module = source.module.operation.clone()
    with diagnostics.collect() as remarks:
        run_pipeline(
            module, f"builtin.module({','.join(steps_to_contractions(allow_tf32))})"
        )
    found = [
        contraction
        for func in host_functions(module)
        for contraction in marked_contractions(func)
    ]
    if len(found) != 1:
        why = f": {remarks[0].message}" if remarks and not found else ""
        raise ConfigError(
            f"'{name}' computes {len(found) or 'no'} contractions that can be tuned, "
            f"expected one{why}"
        )
    problem = problem_of(found[0])
    if problem is None:
        raise ConfigError(
            f"'{name}' has a size that is 0 or known at run time only, or multiplies "
            "other types than memory holds: no model covers these"
        )
    return problem
