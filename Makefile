# Two commands matter: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOKENIZER ?= mistral-7b-v0.1

.PHONY: setup demo test lint bench check-all clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "maskwright needs Python >= 3.11; run: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# Analyse Lark's own python.lark against the Mistral-7B v0.1 vocabulary, write the report, export the store.
demo: $(STAMP)
	@mkdir -p out
	$(BIN)/maskwright analyze lark:python --tokenizer $(TOKENIZER) --html out/report.html --json out/report.json
	$(BIN)/maskwright export lark:python --tokenizer $(TOKENIZER) -o out/python.safetensors
	$(BIN)/maskwright info out/python.safetensors

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Dated records under reports/record.
bench: $(STAMP)
	$(BIN)/python reports/bench/streamlining.py
	$(BIN)/python reports/bench/mask_equality.py

# Everything that takes minutes: slow tests, benchmarks, pyformlang on python.lark, the Coq proofs where Coq is installed.
check-all: lint test bench
	$(BIN)/python -m pytest -m slow
	$(BIN)/python reports/bench/pyformlang_agreement.py
	@if command -v coqc >/dev/null; then $(MAKE) -C proofs; else echo "coqc is not installed: the proofs were not checked (apt-get install coq)"; fi

clean:
	rm -rf $(VENV) build dist out *.egg-info
