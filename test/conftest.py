"""What holds for all pytest tests: the markers, and reproducible examples."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from devices import has_gpu
from hypothesis import settings

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop

FOLDER = Path(__file__).resolve().parent
# The user's own records and models must not decide what tests see.
os.environ["ALCOP_CACHE_DIR"] = tempfile.mkdtemp(prefix="alcop-test-cache-")

# The same examples everywhere, and no test fails because a machine was busy.
# HYPOTHESIS_PROFILE=search looks for new counter-examples instead.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Modules that take more than 2.5 s, by `pytest --durations=0`; of those that have no
# other of their kind beside them, only the slow functions. All else is `fast`.
SLOW = (
    "compilation/test_bounds.py",
    "compilation/test_convolutions.py",
    "compilation/test_device_functions.py",
    "compilation/test_multi_kernel_functions.py",
    "compilation/test_fusion_types.py",
    "compilation/test_gathers.py",
    "compilation/test_guarded_variants.py",
    "compilation/test_matmul_fusion.py",
    "compilation/test_scaling.py",
    "compilation/test_matmul_numerics.py",
    "compilation/test_operand_fusion.py",
    "compilation/test_matmul_shapes.py",
    "compilation/test_matmul_split_k.py",
    "compilation/test_matmul_strides.py",
    "compilation/test_matmul_types.py",
    "compilation/test_operand_conversions.py",
    "compilation/test_random_fusion.py",
    "compilation/test_scalar_bodies.py",
    "compilation/test_scalar_conversions.py",
    "compilation/test_staged_copies.py",
    "compilation/test_store_sectors.py",
    "embedding/test_docs.py::test_the_readme",
    "embedding/test_examples.py",
    "foreign/test_peers.py::test_row",
    "foreign/test_input_forms.py",
    "foreign/test_reported_failures.py::test_a_pipeline_that_is_run_again",
    "foreign/test_reported_failures.py::test_fewer_iterations",
    "foreign/test_reported_failures.py::test_hoisted_views",
    "foreign/test_reported_failures.py::test_last_tile",
    "foreign/test_reported_failures.py::test_ldmatrix",
    "foreign/test_reported_failures.py::test_plain_loop",
    "foreign/test_reported_failures.py::test_two_groups",
    "foreign/test_versions.py",
    "fuzz/test_pipelines.py::test_pipelining_changes_nothing",
    "from_torch/",
    "gpu_kit/test_kit_bench.py",
    "gpu_kit/test_kit_check.py",
    "gpu_kit/test_kit_command.py",
    "models/test_bench_models.py::test_counted_by_hand",
    "models/test_models.py",
    "mutation/test_mutants.py::test_damaged_input",
    "runtime/emulator/test_counters.py",
    "runtime/emulator/test_fixtures.py",
    "runtime/emulator/test_hazards.py",
    "runtime/emulator/instructions/test_convert.py",
    "runtime/emulator/instructions/test_float.py",
    "runtime/emulator/test_mutations.py",
    "runtime/test_bundle_storage.py",
    "runtime/test_own_kernels.py",
    "sweep/test_sweep.py::test_sweep",
    "tools/test_bad_input.py",
    "tools/test_compile.py",
    "tools/test_emulator_options.py",
    "tools/test_gpu_modules.py::test_gpu_to_llvm",
    "tools/test_read_back.py",
    "tools/test_run.py",
    "tuning/test_learned.py",
    "tuning/test_measuring.py",
    "tuning/test_models_of_time.py",
    "tuning/test_one_decision.py",
    "tuning/test_records.py",
    "tuning/test_search.py",
    "tuning/test_space.py",
    "tuning/test_tune_tool.py",
    "verifier/test_check.py::test_each_wait",
    "verifier/test_check.py::test_no_wait",
    "verifier/test_plans.py",
    "unit/test_api.py",
    "unit/test_base_install.py",
    "unit/test_new_rows.py",
    "unit/test_upstream_page.py",
)


def _sampled(items: list[pytest.Item]) -> Iterator[tuple[list[pytest.Item], int]]:
    """The cases of each test marked as `sample(n)`, and n."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in groups.values():
        marker = group[0].get_closest_marker("sample")
        assert marker is not None
        yield group, int(marker.args[0])


def without_sample(cases: list[pytest.Item], count: int) -> list[pytest.Item]:
    """All but `count` of the cases, drawn by their names: the same everywhere."""
    return sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))[count:]


@pytest.fixture
def context() -> Iterator[ir.Context]:
    """An MLIR context with our dialect, and a location; remarks are not printed."""
    with make_context() as made, ir.Location.unknown(), diagnostics.collect():
        alcop.load()
        yield made


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what samples do; mark what is fast; skip what needs a GPU."""
    if not os.environ.get("ALCOP_ALL_TESTS"):
        left_out = [
            item for group in _sampled(items) for item in without_sample(*group)
        ]
        config.hook.pytest_deselected(items=left_out)
        numbers = {id(item) for item in left_out}
        items[:] = [item for item in items if id(item) not in numbers]
    slow = tuple(str(FOLDER / name) for name in SLOW)
    for item in items:
        name = item.nodeid.partition("::")[2]
        if not f"{item.path}::{name}".startswith(slow):
            item.add_marker("fast")
    for_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if for_gpu and not has_gpu():
        skip = pytest.mark.skip(reason="needs CuPy and a CUDA device")
        for item in for_gpu:
            item.add_marker(skip)
