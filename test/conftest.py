"""What holds for all pytest tests: the markers, and reproducible examples."""

from __future__ import annotations

import atexit
import os
import shutil
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
_CACHE = tempfile.mkdtemp(prefix="alcop-test-cache-")
os.environ["ALCOP_CACHE_DIR"] = _CACHE
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)

# The same examples everywhere, and no test fails because a machine was busy.
# HYPOTHESIS_PROFILE=search looks for new counter-examples instead.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Whether all cases are run: also where all mutants are asked for.
ALL = os.environ.get("ALCOP_ALL_TESTS") or os.environ.get("ALCOP_MUTANTS") == "all"

# Where a case takes a fifth of a second and more, by CPU times of a busy machine: what
# compiles and runs whole kernels. `make test` runs a tenth of their cases, `make
# test-all` all of them, `make test-fast` none.
SLOW = (
    "certificate/test_certificate_mutants.py",
    "certificate/test_placed.py",
    "certificate/test_placed_open.py",
    "certificate/test_placed_open_elements.py",
    "certificate/test_placed_turns.py",
    "certificate/test_placed_edges.py",
    "certificate/test_checker.py",
    "certificate/test_compiled_kernels.py",
    "certificate/test_endings.py",
    "certificate/test_random_kernels.py",
    "certificate/test_rings.py",
    "certificate/test_tampering.py",
    "compilation/",
    "embedding/test_contexts.py",
    "embedding/test_docs.py::test_the_readme",
    "embedding/test_examples.py",
    "foreign/",
    "foreign_compilers/",
    "foreign_programs/",
    "from_torch/",
    "fuzz/",
    "gpu_kit/test_kit_bench.py",
    "gpu_kit/test_kit_check.py",
    "gpu_kit/test_kit_command.py",
    "models/",
    "mutation/test_mutants.py::test_damaged_input",
    "runtime/emulator/instructions/test_convert.py",
    "runtime/emulator/instructions/test_float.py",
    "runtime/emulator/test_cluster_gemm.py",
    "runtime/emulator/test_cluster_launches.py",
    "runtime/emulator/test_copy_rings.py",
    "runtime/emulator/test_counters.py",
    "runtime/emulator/test_fixtures.py",
    "runtime/emulator/test_hazards.py",
    "runtime/emulator/test_mutations.py",
    "runtime/emulator/test_ptx_forms.py",
    "runtime/emulator/test_rings_seen.py",
    "runtime/emulator/test_warp_role_gemms.py",
    "runtime/emulator/test_warpgroup_gemm.py",
    "runtime/test_bundle_storage.py",
    "runtime/test_own_kernels.py",
    "sweep/test_sweep.py::test_sweep",
    "tools/test_bad_input.py",
    "tools/test_bad_sizes.py",
    "tools/test_certify.py",
    "tools/test_compile.py",
    "tools/test_emulator_options.py",
    "tools/test_gpu_modules.py::test_gpu_to_llvm",
    "tools/test_read_back.py",
    "tools/test_run.py",
    "tuning/test_code_size.py",
    "tuning/test_learned.py",
    "tuning/test_measuring.py",
    "tuning/test_models_of_time.py",
    "tuning/test_one_decision.py",
    "tuning/test_open_variants.py",
    "tuning/test_record_index.py",
    "tuning/test_records.py",
    "tuning/test_residuals.py",
    "tuning/test_search.py",
    "tuning/test_selection.py",
    "tuning/test_space.py",
    "tuning/test_tune_program.py",
    "tuning/test_tune_tool.py",
    "unit/test_api.py",
    "unit/test_base_install.py",
    "unit/test_new_rows.py",
    "unit/test_upstream_page.py",
    "verifier/test_check.py::test_each_wait",
    "verifier/test_check.py::test_no_wait",
    "verifier/test_plans.py",
)


_SLOW_PATHS = tuple(f"{FOLDER}/{one}" for one in SLOW)


def _is_slow(item: pytest.Item) -> bool:
    name = item.nodeid.partition("::")[2]
    return f"{item.path}::{name}".startswith(_SLOW_PATHS)


def _sampled(items: list[pytest.Item]) -> Iterator[tuple[list[pytest.Item], int]]:
    """The cases of each test of which some are left out, and how many are run.

    Those that `sample(n)` says, or a tenth of a slow test's, one at least.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in groups.values():
        marker = group[0].get_closest_marker("sample")
        if marker is not None:
            yield group, int(marker.args[0])
        elif _is_slow(group[0]):
            yield group, max(1, -(-len(group) // 10))


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
    if not ALL:
        left_out = [
            item for group in _sampled(items) for item in without_sample(*group)
        ]
        config.hook.pytest_deselected(items=left_out)
        numbers = {id(item) for item in left_out}
        items[:] = [item for item in items if id(item) not in numbers]
    for item in items:
        if not _is_slow(item):
            item.add_marker("fast")
    for_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if for_gpu and not has_gpu():
        skip = pytest.mark.skip(reason="needs CuPy and a CUDA device")
        for item in for_gpu:
            item.add_marker(skip)
