# `make lab` opens the lessons, `make test` tests everything; `make help` lists the rest.
# Written for GNU make 3.81 and any POSIX shell, so that macOS needs nothing more.

# The python that .venv is made with; empty: the first one found that is new enough.
PYTHON ?=
# Which build of PyTorch: cpu, cuda, or default (what the package index gives). The choice is remembered in .venv.
# Empty, as in an exported TORCH=, is no choice.
override TORCH := $(or $(strip $(TORCH)),$(patsubst .venv/.torch-%,%,$(firstword $(wildcard .venv/.torch-*) default)))
# The CUDA build that PyTorch publishes for the version in constraints.txt: cu126, cu130 or cu132.
override CUDA := $(or $(strip $(CUDA)),cu130)
PYTORCH_INDEX = https://download.pytorch.org/whl

ifneq ($(words $(TORCH)) $(words $(filter cpu cuda default,$(TORCH))),1 1)
$(error TORCH must be cpu, cuda or default; it is "$(TORCH)")
endif
ifneq ($(words $(CUDA)) $(words $(filter cu%,$(CUDA))),1 1)
$(error CUDA must be one build, such as cu130; it is "$(CUDA)")
endif

RUN = .venv/bin/python
# Without a network, and with a home folder of their own for progress and settings.
OFFLINE = $(RUN) tests/offline/run.py
# Two at a time: a file of tests, or a notebook, stays in one process.
PAIRS = --numprocesses 2 --dist loadfile --max-worker-restart 1
QUICK = -o faulthandler_timeout=600
LONG_TOO = -m "long or not long"
NBVAL = --nbval-lax --nbval-current-env --nbval-cell-timeout 120 --numprocesses 2 --dist loadscope
# What tests/colab/make_venv.py says instead where Colab's versions cannot be had.
COLAB = cat .venv-colab/left-out 2>/dev/null || $(OFFLINE) .venv-colab/bin/python -m pytest --disable-warnings
COLAB_LESSONS = notebooks/01_accumulate.ipynb notebooks/02_scale_the_loss.ipynb
# What stands on the packages that are older there: widgets, IPython, pictures, tables. The rest meets the same torch,
# and banks are read by the same pydantic and PyYAML.
COLAB_TESTS = tests/ui tests/test_cell.py tests/quiz/test_order.py tests/quiz/test_quiz.py tests/quiz/test_shown.py tests/quiz/test_view.py

# In a terminal pip shows its progress bars; elsewhere only what goes wrong.
PIP = export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore; \
	quiet=--quiet; if [ -t 1 ]; then quiet=; fi; $(RUN) -m pip install $$quiet --constraint constraints.txt
LINUX_DEFAULT = $(and $(filter default,$(TORCH)),$(filter Linux,$(shell uname)))
SIZE = $(if $(filter cuda,$(TORCH))$(LINUX_DEFAULT),up to 6 GB (with TORCH=cpu: 2 GB),about 2 GB)

.PHONY: help lab install test test-all lint notebooks bench norms clean

help:
	@echo "make lab        set up .venv and open the lessons in JupyterLab"
	@echo "make test       set up, then run the tests, without a network"
	@echo "make install    set up alone, with everything the tests need"
	@echo "make lint       ruff and mypy"
	@echo "make notebooks  execute and clean every notebook"
	@echo "make bench      measure how fast things are, and how close predictions of memory come"
	@echo "make norms      measure lesson 05's table of accuracies anew: about a quarter of an hour of two cores"
	@echo "make test-all   the tests and what takes long: at most an hour"
	@echo "make clean      remove .venv and everything else that was made here"
	@echo
	@echo "TORCH=cpu|cuda|default chooses the build of PyTorch, as in: make lab TORCH=cpu"
	@echo "PYTHON=python3.12 chooses the python that .venv is made with."

lab: .venv/.installed-base
	@$(RUN) -m gradacc_lessons lab

install: .venv/.installed-dev

test: .venv/.installed-dev .venv-colab/.installed
	$(OFFLINE) $(RUN) -m pytest $(PAIRS) $(QUICK) tests --ignore=tests/browser
	$(OFFLINE) $(RUN) -m pytest $(PAIRS) $(QUICK) tests/browser
	$(OFFLINE) $(RUN) -m pytest $(NBVAL) notebooks
	@echo "Under the versions that Colab publishes:"
	$(COLAB) $(PAIRS) $(QUICK) $(COLAB_TESTS)
	$(COLAB) $(NBVAL) $(COLAB_LESSONS)

test-all: .venv/.installed-dev .venv-colab/.installed
	$(OFFLINE) $(RUN) -m pytest $(PAIRS) $(LONG_TOO) tests --ignore=tests/browser
	$(OFFLINE) $(RUN) -m pytest $(PAIRS) $(LONG_TOO) tests/browser
	$(OFFLINE) $(RUN) -m pytest $(NBVAL) notebooks
	@echo "Under the versions that Colab publishes:"
	$(COLAB) $(PAIRS) $(LONG_TOO) tests/ui tests/test_cell.py tests/quiz --ignore=tests/quiz/test_bank_mutations.py
	$(COLAB) $(NBVAL) notebooks

lint: .venv/.installed-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

notebooks: .venv/.installed-dev
	$(RUN) -m gradacc_lessons notebooks execute
	$(RUN) -m gradacc_lessons notebooks check

bench: .venv/.installed-bench
	$(RUN) -m benchmarks

norms: .venv/.installed-dev
	$(RUN) -m benchmarks.norms

clean:
	rm -rf .venv .venv-colab build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- what the targets above stand on -----------------------------------------------------------------------

.venv/bin/python:
	@set -e; \
	fits='import sys; sys.exit(sys.version_info < (3, 11))'; \
	chosen='$(strip $(PYTHON))'; \
	if [ -z "$$chosen" ]; then \
	  for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	    if "$$candidate" -c "$$fits" >/dev/null 2>&1; then chosen="$$candidate"; break; fi; \
	  done; \
	fi; \
	if [ -z "$$chosen" ]; then \
	  echo "No Python 3.11 or newer was found: install one, or name it with PYTHON=/path/to/python3." >&2; exit 1; \
	fi; \
	if ! "$$chosen" -c "$$fits" 2>/dev/null; then \
	  echo "$$chosen is no Python 3.11 or newer that runs: name another one with PYTHON=/path/to/python3." >&2; exit 1; \
	fi; \
	if ! "$$chosen" -c 'import ensurepip, venv' 2>/dev/null; then \
	  package=$$("$$chosen" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	  echo "$$chosen cannot make virtual environments yet: run 'sudo apt-get install $$package' and try again." >&2; \
	  exit 1; \
	fi; \
	echo "Making .venv with $$("$$chosen" --version)."; \
	"$$chosen" -m venv --clear .venv

.venv/.torch-$(TORCH): .venv/bin/python
	@set -e; \
	if [ -n "$(wildcard .venv/.torch-*)" ]; then \
	  echo "Taking out the build of PyTorch that is here, for TORCH=$(TORCH)."; \
	  $(RUN) -m pip uninstall --quiet --yes torch; \
	fi; \
	rm -f .venv/.torch-*; \
	if [ $(TORCH) != default ]; then \
	  echo "Installing PyTorch for $(TORCH), from PyTorch's own index."; \
	  $(PIP) --index-url $(PYTORCH_INDEX)/$(if $(filter cuda,$(TORCH)),$(CUDA),cpu) torch; \
	fi; \
	touch .venv/.torch-$(TORCH)

INSTALL = @set -e; \
	echo "Installing the course into .venv: $(SIZE), a few minutes the first time."; \
	$(PIP) --editable

.venv/.installed-base: .venv/.torch-$(TORCH) pyproject.toml constraints.txt
	$(INSTALL) ".[models,certificate]"; touch $@

.venv/.installed-dev: .venv/.torch-$(TORCH) pyproject.toml constraints.txt
	$(INSTALL) ".[dev]"; touch .venv/.installed-base $@

.venv/.installed-bench: .venv/.torch-$(TORCH) pyproject.toml constraints.txt
	$(INSTALL) ".[dev,frameworks]"; touch .venv/.installed-base .venv/.installed-dev $@

# Written when .venv is made and never again, unlike the python beside it: a link to one that may be older or newer.
.venv/pyvenv.cfg: | .venv/bin/python ;

# It finds what it does not have itself in .venv, as that is now; only another .venv makes it new.
.venv-colab/.installed: .venv/pyvenv.cfg tests/colab/make_venv.py tests/colab/constraints.txt | .venv/.installed-dev
	@$(RUN) tests/colab/make_venv.py .venv-colab && touch $@
