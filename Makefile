# What README and CI call. Everything is installed into .venv, with the exact versions of constraints.txt.
# PYTHON=/path/to/python3.13 names the Python to install with; .ci/python looks for one otherwise.
BIN := .venv/bin
comma := ,
INSTALLED := .venv/.installed
RUNNABLE := .venv/.runnable
PARALLEL := -q -n auto --dist loadfile --no-loadscope-reorder --durations=10
LOWEST := build/lowest/venv/bin

.DEFAULT_GOAL := help
.PHONY: help install demo test soak faults simulate bench claims check guide wheel lowest lock sbom format serve up down clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

install: $(INSTALLED) ## make .venv and install the project with its server, workers and tests (about 7 GB, a few minutes)

define install
@found=$$(PYTHON="$(PYTHON)" sh .ci/python) || exit 1; clear=--clear; \
	[ "$$($$found -V)" = "$$(.venv/bin/python -V 2>/dev/null)" ] && clear=; $$found -m venv $$clear .venv
$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(1)]'
endef

$(INSTALLED): pyproject.toml constraints.txt
	$(call install,server$(comma)worker$(comma)traces$(comma)docs$(comma)dev)
	touch $(RUNNABLE) $(INSTALLED)

$(RUNNABLE): pyproject.toml constraints.txt # what trains, serves and shows; not what only tests and checks need
	$(call install,server$(comma)worker$(comma)docs)
	touch $(RUNNABLE)

demo: $(RUNNABLE) dashboards/guide ## run sweeps/demo.yaml through the real service, print its table and write it to build/demo
	$(BIN)/metricsweep run sweeps/demo.yaml --home .metricsweep --out build/demo

test: install ## run the tests; what this machine lacks is skipped with a reason
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest $(PARALLEL) -m "not soak"

soak: install ## run the long tests: simulated worlds, faults at two moments, storms, Slurm, large sweeps, claims (a quarter of an hour)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 FAULT_MOMENTS=2 $(BIN)/pytest $(PARALLEL) -m soak

faults: install ## kill, stop and starve real processes at up to ten moments; figures to docs/reliability.md (half an hour)
	rm -f build/faults.jsonl
	FAULT_MOMENTS=10 $(BIN)/pytest -m faults tests/faults
	$(BIN)/python -m tests.faults.report

simulate: install ## worlds that a seed draws, with faults at every transaction, for SECONDS (60), on from seed FIRST (1000): the product's code in one thread
	$(BIN)/python -m tests.simulation --seconds $(or $(SECONDS),60) --first $(or $(FIRST),1000)
	$(BIN)/python -m tests.simulation --operations

bench: install ## what docs/performance.md says, on an idle machine: some NAMES="start latency", or all (about an hour and a half)
	$(BIN)/python -m benchmarks.performance $(NAMES)

claims: install ## train and assert what the quick twins claim, over ten seeds; figures to docs/claims.md (half an hour)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.claims --write

check: install ## ruff, mypy --strict, import-linter, the tests of the tree's shape, and the guide; imports no torch
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory guide
	$(BIN)/pytest -q tests/shape

lowest: ## install the lower bounds of pyproject.toml into build/lowest and run a small sweep with them (about 6 GB)
	rm -rf build/lowest build/lib build/bdist.* && mkdir -p build/lowest # setuptools would pack modules of an earlier build too
	$$(PYTHON="$(PYTHON)" sh .ci/python) -m venv build/lowest/venv
	$(LOWEST)/python .ci/lowest.py > build/lowest/constraints.txt
	$(LOWEST)/pip install --quiet --upgrade pip # its resolver reads the metadata alone of what it does not take
	$(LOWEST)/pip install --quiet -c build/lowest/constraints.txt '.[server,worker,traces]'
	$(LOWEST)/metricsweep --help > build/lowest/help.txt
	$(LOWEST)/metricsweep expand sweeps/digits.yaml
	$(LOWEST)/metricsweep run sweeps/digits.yaml --only loss=triplet --only regularizer=none --only seed=0,1 \
		--set recipe.iterations=20 --home build/lowest/home --out build/lowest/tables \
		2> build/lowest/run.log || { cat build/lowest/run.log; exit 1; }
	! grep 'ended with exit code' build/lowest/run.log # such as MLflow's server, without which a sweep ends all the same

guide: $(RUNNABLE) ## build docs/ as a site, which `serve` shows at /docs/guide/; every warning is an error
	rm -rf build/guide
	$(BIN)/sphinx-build -q -W --keep-going -E -c docs/site -d build/doctrees docs build/guide
	rm -rf dashboards/guide && mv build/guide dashboards/guide

dashboards/guide: # once; `make guide` builds it anew
	@$(MAKE) --no-print-directory guide

wheel: guide ## build the wheel, with the site in it, into dist
	rm -rf build/lib build/bdist.*
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps -w dist .

lock: install ## write what follows from constraints.txt: what the images install, and the catalog of pytorch-metric-learning
	$(BIN)/python .ci/pml_catalog.py
	$(BIN)/python docker/lock.py

sbom: ## write what the images hold as CycloneDX documents, build/sbom/*.cdx.json, from docker/*.lock.txt
	python3 -m venv build/sbom && build/sbom/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	for image in control worker; do build/sbom/bin/cyclonedx-py requirements docker/$$image.lock.txt \
		--pyproject pyproject.toml --output-reproducible --output-file build/sbom/$$image.cdx.json || exit 1; done

format: install ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

serve: $(RUNNABLE) dashboards/guide ## serve API, pages, conductor, Ray and MLflow on 127.0.0.1
	$(BIN)/metricsweep serve

up: ## needs Docker: build the images and start docker-compose.yml; secrets from .env
	docker compose up -d --build

down: ## needs Docker: stop docker-compose.yml; its volumes stay
	docker compose down

clean: ## remove what was built; keeps .metricsweep
	rm -rf build dist dashboards/guide .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
