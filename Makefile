# Each goal sets up .venv by itself, once; afterwards none needs the network.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
READY := .venv/ready
OURS := .venv/ours
PYTHONS := $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3 python
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
PYTEST := $(BIN)/python -m pytest -q -p no:cacheprovider
# JupyterLab shows Markdown files as pages, not as text to edit, and asks for no news from afar
SETTINGS := .venv/share/jupyter/lab/settings
QUIET := "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}
# nbgrader's menus are for who makes assignments: remove that file to have them
PAGE := .venv/etc/jupyter/labconfig/page_config.json
NO_GRADING := "disabledExtensions": {"@jupyter/nbgrader": true}
PAGES := "@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}}
define LAB
@mkdir -p $(SETTINGS) && echo '{$(PAGES), $(QUIET)}' > $(SETTINGS)/overrides.json
@mkdir -p $(dir $(PAGE)) && { [ -f $(PAGE) ] || echo '{$(NO_GRADING)}' > $(PAGE); }
endef
ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)
# `pytest --nbval-lax notebooks/` in two halves, which write to a temporary folder: those that
# read results find the committed scores there, not what the training ones have just made; and
# unless figures/ is known to differ from what is committed, what a text says of the miniature's
# scores is held against them
STRICT = OSNB_STRICT=$$([ "$$(git status --porcelain -uno figures 2>/dev/null)" ] || echo 1)
NBVAL = OMP_NUM_THREADS=1 $(STRICT) $(PYTEST) --nbval-lax --nbval-current-env \
  --nbval-kernel-startup-timeout 600 -n 2 --dist loadfile
# a worker keeps a module's tests together, for what they share, until it has none and takes some
SHARED := OMP_NUM_THREADS=1 $(PYTEST) -n 2 --dist worksteal

export PIP_USER := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# compiled modules are kept as they are first imported, which is faster than compiling them all
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE VIRTUAL_ENV

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

# runs made at the same time: one a core, at most four, since each takes up to 1 GB
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); echo $$((n < 4 ? n : 4)))

reproduce: $(READY) ## run every miniature (SEEDS=all: those of params/repeats.yaml too), write figures/ and the report
	$(if $(filter-out all,$(SEEDS)),$(error SEEDS is all, or left out; got $(SEEDS)))
	@$(BIN)/osnb reproduce --workers $(WORKERS) $(if $(filter all,$(SEEDS)),--repeats); code=$$?; $(BIN)/osnb report && exit $$code

test: lint ## check everything: lint, unit tests, every notebook
	$(SHARED)
	@export OSNB_OUT=$$(mktemp -d) && trap 'rm -rf "$$OSNB_OUT"' EXIT && set -x && \
	$(NBVAL) $(filter %_train.ipynb,$(NOTEBOOKS)) && \
	rm -rf "$$OSNB_OUT/runs" && \
	$(NBVAL) $(filter-out %_train.ipynb,$(NOTEBOOKS))

quick: lint ## lint and the fast unit tests, for between commits
	$(SHARED) -m "not slow"

lint: $(READY) ## hold code, notebooks and params files against their rules
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/osnb check

lab: $(READY) ## open JupyterLab at your own copy of the notebooks, in learn/
	$(BIN)/osnb course --learn learn
	$(LAB)
	OSNB_OUT="$(CURDIR)/learn" $(BIN)/jupyter lab --ServerApp.root_dir="$(CURDIR)/learn" \
	  $(ROOT) --LabApp.default_url=/lab/tree/README.md

teach: $(READY) ## open JupyterLab at the notebooks themselves, with solutions and answers
	$(LAB)
	$(BIN)/jupyter lab $(ROOT) --LabApp.default_url=/lab/tree/notebooks/README.md

golden: $(READY) ## for developers: write anew the goldens that have changed
	$(BIN)/python -m tests.tools.goldens

outputs: reproduce ## for developers: keep the miniatures' outputs in notebooks/
	$(BIN)/python -m tests.tools.outputs

# pip-audit ends with 1 both for a hole and where it could ask nobody: the latter is said
HOLES := --strict --no-deps --disable-pip --progress-spinner off --requirement requirements.lock

audit: lint ## rules, kills, ten minutes and a table of malformed files, holes in the lock
	$(PYTEST) tests/test_kill.py tests/test_trust.py
	$(PYTEST) tests/test_batch.py tests/test_ranks.py -k "kill or user or nobody"
	$(BIN)/python -m tests.kills --kills 100
	$(BIN)/python -m tests.tries
	$(BIN)/python -m tests.audit --seconds 600
	@$(MAKE) --no-print-directory holes

# of the lock's versions; `make audit` asks for it
holes: $(READY)
	@[ -x $(BIN)/pip-audit ] || $(BIN)/python -m pip install --quiet --no-build-isolation \
	  --constraint requirements.lock --editable '.[audit]' || \
	  { echo "not audited: pip-audit is not installed"; exit 1; }
	@said=$$($(BIN)/pip-audit $(HOLES) 2>&1) || code=1; echo "$$said"; [ -z "$$code" ] || \
	  { [[ "$$said" == *"known vulnerabilit"* ]] || echo "not audited: see the line above"; exit 1; }

clean: ## remove .venv and caches; runs/ and figures/ stay
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis *.egg-info
	find osnb tests notebooks -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf

# .venv/ready holds the folder it was made in. Without it a set-up was never finished, with
# another folder the clone was moved: both start over. If the lock changed, pip catches up.
# Another's .venv is moved aside, and none is touched before there is a Python to make one.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif
$(READY): requirements.lock pyproject.toml
	@PATH=$${PATH//"$(CURDIR)/.venv/bin:"/}; for python in $(PYTHONS); do \
	  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' 2>/dev/null && break; python=; \
	done; \
	[ -n "$$python" ] || { \
	  echo "this needs Python 3.11.5 or newer: install one, or say make PYTHON=/path/to/python3.11" >&2; \
	  exit 1; }; \
	if [ "$$(cat $@ 2>/dev/null)" = "$(CURDIR)" ]; then mv -f $@ $(OURS); \
	elif [ -f $@ ] || [ -f $(OURS) ]; then rm -rf .venv; \
	elif [ -d .venv ] && [ -e .venv.before ]; then \
	  echo ".venv is another's, and there is a .venv.before: move one of them away" >&2; exit 1; \
	elif [ -d .venv ]; then mv .venv .venv.before && echo "moved .venv to .venv.before"; fi; \
	[ -d .venv ] || { echo "setting up .venv with $$($$python --version), once: a minute or more" && \
	  mkdir .venv && touch $(OURS) && $$python -m venv .venv; }
	@$(BIN)/python -m pip install --quiet --no-compile --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@echo "$(CURDIR)" > $@

.PHONY: help reproduce test audit holes quick golden lint lab teach outputs clean
