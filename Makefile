# Every entry point of the project; `make help` lists them.

# `make PYTHON=...` takes another interpreter than the one that scripts/find-python finds.
PYTHON ?=
# The controller's other Python: 3.11 ends at ansible-core 2.19, 3.13 has the newest, so unit tests run under both.
OTHER_PYTHON ?= $(if $(findstring 3.11.,$(shell .venv/bin/python --version)),3.13,3.11)
BIN = .venv/bin
PREPARE = .venv/.stamp
SUITE = scripts/suite
export PYTHONDONTWRITEBYTECODE = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help demo demo-down test test-slow test-kill test-vm test-peers test-properties check lint types unit unit-other unit-node docs-lint drift swagger sanity integration molecule live-check bench bench-converge bench-inventory bench-network docs generate lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

demo: $(PREPARE) ## a fleet in a local Azure, converged, verified; needs root
	@$(BIN)/gpufleet demo

demo-down: $(PREPARE) ## remove what the demo made
	@$(BIN)/gpufleet lab down --prefix demo

# Every suite runs, also after a failed one, and the last line sums them.
test: $(PREPARE) ## all suites; without root those that need none, the others are named as skipped
	@mkdir -p build && rm -f build/suites && touch build/suites
	@SUITE_RECORD=$(CURDIR)/build/suites $(MAKE) --no-print-directory --keep-going check swagger sanity integration molecule; scripts/suite-sum build/suites $$?

test-slow: test-kill test-vm test-peers test-properties ## all that takes long

test-vm: $(PREPARE) ## virtual machines as nodes, booted again and again; needs root
	@$(SUITE) vm env GPUFLEET_TEST_MACHINES=1 $(BIN)/python -m pytest -q -rs tests/integration/lab/test_machine.py

test-peers: $(PREPARE) ## others' programs against the lab: azure_rm, cloud-init, Azure's agent; fetches them once
	@$(SUITE) peers $(BIN)/python -m pytest -q -rs tests/peers

test-kill: $(PREPARE) ## labs killed at 30 moments of each command; needs root
	@$(SUITE) kill env GPUFLEET_TEST_KILLS=30 $(BIN)/python -m pytest -q -rs tests/integration/lab/test_lifecycle.py -k kill

test-properties: $(PREPARE) ## property tests with 2,000 examples each
	@$(SUITE) properties $(BIN)/python -m pytest -q -p no:cacheprovider --hypothesis-profile=thorough tests/unit

check: lint types unit unit-other unit-node docs-lint drift ## what needs neither root nor a lab

lint: $(PREPARE) ## style
	@$(SUITE) ruff sh -c '$(BIN)/ruff format --check . && $(BIN)/ruff check .'
	@PATH=$(CURDIR)/$(BIN):$$PATH $(SUITE) ansible-lint $(BIN)/ansible-lint -q
	@$(SUITE) yamllint $(BIN)/yamllint --strict .

types: $(PREPARE) ## mypy, strict
	@$(SUITE) mypy $(BIN)/mypy -p ansible_collections.gpufleet.vmss.plugins -p gpufleet -p lab

unit: $(PREPARE) ## unit tests
	@$(SUITE) unit $(BIN)/python -m pytest -q tests/unit

# The node program needs no ansible-core; its tests run under its own oldest Python instead.
unit-other: $(PREPARE) ## unit tests under the controller's other Python, where there is one
	@$(SUITE) unit-$(OTHER_PYTHON) scripts/other-python $(OTHER_PYTHON) requirements-dev.lock tests/unit --ignore tests/unit/plugins/module_utils/node

unit-node: $(PREPARE) ## tests of the node program under Python 3.10, where there is one
	@$(SUITE) unit-3.10 scripts/other-python 3.10 requirements-node.lock tests/unit/plugins/module_utils/node

docs-lint: $(PREPARE) ## documentation of plugins, changelog
	@$(SUITE) docs env ANSIBLE_COLLECTIONS_PATH=$(CURDIR)/collections PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/antsibull-docs lint-collection-docs --plugin-docs .
	@$(SUITE) changelog $(BIN)/antsibull-changelog lint

drift: $(PREPARE) ## generated role files are those of the SPECs
	@$(SUITE) generated-files $(BIN)/python scripts/generate-roles --check

sanity: $(PREPARE) ## ansible-test sanity, build, install
	@$(SUITE) sanity scripts/sanity

swagger: $(PREPARE) ## the lab's answers against Microsoft's description, where that is at hand
	@$(SUITE) swagger $(BIN)/python -m pytest -q -rs tests/swagger

integration: $(PREPARE) ## tests on a lab; need root
	@$(SUITE) integration $(BIN)/python -m pytest -q -rs tests/integration

molecule: $(PREPARE) ## the whole site on a lab by molecule; needs root
	@$(SUITE) molecule scripts/molecule test --all

live-check: $(PREPARE) ## a real subscription's answers beside the lab's: make live-check ARGUMENTS="--subscription ... --group ... --uniform ... --flexible ..."
	@$(BIN)/python tests/live/check.py $(ARGUMENTS)

bench: bench-converge bench-inventory bench-network ## all benchmarks

bench-inventory: $(PREPARE) ## 7,500 instances listed, beside azure_rm where make test-peers has fetched it; ARGUMENTS=--quick beside 1,000
	@$(BIN)/python tests/bench/inventory.py $(ARGUMENTS)

bench-network: $(PREPARE) ## pods on alias addresses beside their hosts and VXLAN, ADD beside ptp, the plan; needs root
	@$(BIN)/python tests/bench/network.py $(ARGUMENTS)

bench-converge: $(PREPARE) ## cost of a converge against the same settings as tasks; needs root
	@$(BIN)/python tests/bench/converge.py

docs: $(PREPARE) ## plugin pages in build/docs
	@mkdir -p -m 700 build/docs
	@ANSIBLE_COLLECTIONS_PATH=$(CURDIR)/collections PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/antsibull-docs collection --use-current --dest-dir build/docs gpufleet.vmss

generate: $(PREPARE) ## write the role files from the SPECs
	@$(BIN)/python scripts/generate-roles

lock: $(PREPARE) ## renew the locked versions
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 --group dev pyproject.toml -o requirements-dev.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.10 --group node -o requirements-node.lock

clean: ## remove virtual environments and what was built; take labs down first
	rm -rf .venv .venv-* build

$(PREPARE): requirements-dev.lock pyproject.toml scripts/system-packages lab/system-packages.txt
	@$(SUITE) system-packages scripts/system-packages
	@$(SUITE) virtual-environment scripts/virtual-environment .venv "$(or $(PYTHON),$$(scripts/find-python))"
	@touch $@
