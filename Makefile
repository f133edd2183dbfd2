# `make demo` and `make test` do everything, on a machine with make and Python >= 3.10.
# Both keep an environment in .venv; scripts/setup_env.sh lets pip make it.

BIN := .venv/bin
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo demo-conv demo-model test test-all test-torch test-foreign test-fast test-sweep check format env clean fuzz fuzz-sizes fuzz-roles fuzz-conv gpu-bundle gpu-check gpu-bench gpu-collect
MAKEFLAGS += --no-print-directory
# What these say about the user's own Python would mislead the environment's.
# Each test worker has a CPU: where NumPy's BLAS has a thread for each as well, small
# matrices take many times as long.
export OPENBLAS_NUM_THREADS ?= 1
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_REQUIRE_VIRTUALENV

# $(call setup,EXTRA ...): see to it that .venv is there, with these extras. What is once
# installed stays: `make demo EXTRAS=cuda12` adds CuPy for good.
setup = @PYTHON='$(PYTHON)' sh scripts/setup_env.sh $(1) $(EXTRAS)

# First the release of torch that is also built without CUDA, where pip is told of such a
# wheel: the extra alone would take the newest one, which brings 3 GB of CUDA's libraries.
torch = @$(BIN)/python -I -c 'import torch' 2>/dev/null || $(BIN)/python -I -m pip \
  --disable-pip-version-check --no-input install torch==2.13.0

TEST_EXTRAS := compiler tuning pool test
# Who is done takes tests of others: the longest come late.
WORKERS = -n $(JOBS) --dist worksteal

# lit shows a bar on a terminal; make says whether it writes to one.
PROGRESS := $(if $(MAKE_TERMOUT),--progress-bar)
# Runs each command given to `run`; the recipe fails if any of them does.
RUN_ALL := status=0; run() { echo "== $$*"; "$$@" || status=1; }

help:  ## this list
	@sed -n 's/^\([a-z-]*\):  *\#\# /make \1 # /p' $(MAKEFILE_LIST) | \
	  awk -F' # ' '{ printf "  %-16s %s\n", $$1, $$2 }'
	@echo "  PYTHON=python3.12 chooses the interpreter, JOBS=8 the parallel tests,"
	@echo "  EXTRAS=cuda12 (or cuda13) installs CuPy, to run on the GPU"

demo:  ## compile and run a matmul: on the GPU, else on the emulator
	$(call setup,compiler)
	$(BIN)/alcop-run examples/matmul_f16.mlir --device auto

demo-conv:  ## the same of a convolution of ResNet-18, with all that follows it
	$(call setup,compiler)
	$(BIN)/alcop-run examples/conv_f16.mlir --device auto

demo-model:  ## a BERT layer by torch.compile, on the GPU, else on the emulator
	$(call setup,compiler)
	$(torch)
	$(call setup,compiler torch)
	$(BIN)/python examples/models/run_bert.py

test:  ## all tests: lit, then pytest
	$(call setup,$(TEST_EXTRAS))
	@$(RUN_ALL); \
	run $(BIN)/lit -v --print-result-after=failed $(PROGRESS) -j$(JOBS) test; \
	run $(BIN)/pytest -q $(WORKERS); \
	exit $$status

test-all:  ## the same without samples: every case of every test, and of the sweep
	$(call setup,$(TEST_EXTRAS))
	@$(RUN_ALL); \
	run $(BIN)/lit -v --print-result-after=failed $(PROGRESS) -j$(JOBS) test; \
	ALCOP_ALL_TESTS=1 run $(BIN)/pytest -q $(WORKERS); \
	exit $$status

test-torch:  ## tests and types of what comes from PyTorch, which it installs
	$(call setup,$(TEST_EXTRAS) lint)
	$(torch)
	$(call setup,$(TEST_EXTRAS) lint torch)
	@$(RUN_ALL); \
	run $(BIN)/pyright -p test/from_torch; \
	run $(BIN)/pytest -q $(WORKERS) test/from_torch test/embedding/test_docs.py; \
	exit $$status

# Triton, TileLang and CuTe's DSL ask for other releases of packages than .venv has.
FOREIGN := build/foreign

test-foreign:  ## programs of Triton, TileLang, CuTe, CUTLASS, nvcc; 7 GB, needs nvcc
	$(call setup,$(TEST_EXTRAS))
	@cmp -s pyproject.toml $(FOREIGN)/installed || { \
	  $(BIN)/python -m venv --clear $(FOREIGN) && \
	  $(FOREIGN)/bin/python -I -m pip --disable-pip-version-check --no-input install '.[anchors]' && \
	  cp pyproject.toml $(FOREIGN)/installed; }
	ALCOP_ALL_TESTS=1 ALCOP_FOREIGN_PYTHON=$(FOREIGN)/bin/python $(BIN)/pytest -q -rs test/foreign_compilers test/foreign_programs

# Left out: what takes longest, by test/conftest.py and lit --time-tests.
test-fast:  ## all but what compiles and runs whole kernels: use it while you work
	$(call setup,$(TEST_EXTRAS))
	@$(RUN_ALL); \
	run $(BIN)/lit -q $(PROGRESS) -j$(JOBS) test --filter-out 'test/(tools|embedding)/|select-schedule'; \
	run $(BIN)/pytest -q $(WORKERS) -m fast; \
	exit $$status

test-sweep:  ## all combinations of layout, type, shape, stages and fusion: hours
	$(call setup,$(TEST_EXTRAS))
	ALCOP_ALL_TESTS=1 ALCOP_SWEEP_CASES=$(or $(CASES),all) $(if $(SEED),ALCOP_SWEEP_SEED=$(SEED)) \
	  $(BIN)/pytest -q $(WORKERS) test/sweep

PROSE := README.md CONTRIBUTING.md CHANGELOG.md docs alcop_mlir test bench examples

check:  ## lint, format, types, import rules, dead FileCheck lines, words
	$(call setup,$(TEST_EXTRAS) lint)
	@$(RUN_ALL); \
	run $(BIN)/ruff check --quiet .; \
	run $(BIN)/ruff format --quiet --check .; \
	run $(BIN)/pyright; \
	run $(BIN)/pytest -q test/unit/test_layers.py; \
	run $(BIN)/python test/scripts/check_directives.py test; \
	run $(BIN)/python test/scripts/check_words.py $(PROSE); \
	exit $$status

fuzz:  ## PROGRAMS=50000 random loops through the pipeliner; goes on where it stopped
	$(call setup,$(TEST_EXTRAS))
	$(BIN)/python test/fuzz/fuzz.py --jobs $(JOBS) $(if $(PROGRAMS),--programs $(PROGRAMS)) \
	  $(if $(MINUTES),--minutes $(MINUTES))

fuzz-sizes:  ## FORMS=200 contractions at the borders of their guards; goes on likewise
	$(call setup,$(TEST_EXTRAS))
	$(BIN)/python test/compilation/fuzz_sizes.py $(if $(FORMS),--forms $(FORMS))

fuzz-roles:  ## FORMS=200 random contractions by wgmma for sm_90a; goes on likewise
	$(call setup,$(TEST_EXTRAS))
	$(BIN)/python test/compilation/fuzz_warp_roles.py $(if $(FORMS),--forms $(FORMS))

fuzz-conv:  ## FORMS=1000 random convolutions against NumPy; goes on likewise
	$(call setup,$(TEST_EXTRAS))
	$(BIN)/python test/compilation/fuzz_convolutions.py $(if $(FORMS),--forms $(FORMS))

BUNDLE ?= build/gpu-bundle.zip
GPU_PYTHON ?= python3
GPU_OPTIONS = $(if $(OUT),--out $(OUT)) $(if $(MINUTES),--minutes $(MINUTES))

gpu-bundle:  ## compile all kernels for the three below (TARGET=sm_90)
	$(call setup,compiler)
	$(BIN)/python -m bench.gpu bundle $(BUNDLE) --jobs $(JOBS) $(if $(TARGET),--target $(TARGET))

gpu-check:  ## on a GPU: are the kernels and the emulator right
	$(GPU_PYTHON) -m bench.gpu check $(BUNDLE) $(GPU_OPTIONS)

gpu-bench:  ## on a GPU: times beside cuBLAS and Triton
	$(GPU_PYTHON) -m bench.gpu bench $(BUNDLE) $(GPU_OPTIONS)

gpu-collect:  ## on a GPU: times for the learned model
	$(GPU_PYTHON) -m bench.gpu collect $(BUNDLE) $(GPU_OPTIONS)

format:  ## let ruff rewrite what it can
	$(call setup,$(TEST_EXTRAS) lint)
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format .

env:  ## only make .venv, with everything that demo, test and check need
	$(call setup,$(TEST_EXTRAS) lint)

clean:  ## remove .venv and all that was built
	rm -rf .venv build dist *.egg-info .hypothesis .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
