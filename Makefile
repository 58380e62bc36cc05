# Every entry point; `make help` lists them.
PYTHON ?= python3

.PHONY: test check unit
test: check ## all suites

check: unit ## what needs neither root nor lab

unit: .venv/.stamp
	.venv/bin/python -m pytest -q tests/unit

.venv/.stamp: pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet -e . --group dev
	touch $@
