# make demo   bundled digits: the quickstart, then every method; tables here, pictures in out/
# make test   ruff, then the test suite
# make bench  every figure of speed and accuracy, beside its target and the peers' (many minutes)
#             DATA="a.npz b.npz:6" adds data of one's own to the lasso's, see benchmarks/lasso.py
# make campaign   hostile inputs, files, folders, disks, kills, interrupts and forks, in ten minutes;
#             SEED=1 draws others
#
# All use .venv, which this file owns: made when it is missing, unfinished or older than setup.cfg.
# Another interpreter: make demo PYTHON=python3.12

PYTHON ?= python3
READY := .venv/ready
BENCH := .venv/bench

.PHONY: demo test bench campaign

demo: $(READY)
	.venv/bin/python -m examples.quickstart
	.venv/bin/python -m examples.table_digits

test: $(READY)
	.venv/bin/python -m ruff check .
	.venv/bin/python -m pytest

bench: $(BENCH)
	.venv/bin/python -m benchmarks.gram
	.venv/bin/python -m benchmarks.lasso $(DATA:%=--data %)
	.venv/bin/python -m benchmarks.coding
	.venv/bin/python -m benchmarks.kernels
	.venv/bin/python -m benchmarks.learning
	.venv/bin/python -m benchmarks.rivals
	.venv/bin/python -m benchmarks.videos
	.venv/bin/python -m benchmarks.startup
	.venv/bin/python -m benchmarks.accuracy

campaign: $(READY)
	.venv/bin/python -m benchmarks.campaign $(SEED:%=--seed %)

define CHECK_PYTHON
import sys
if sys.version_info < (3, 10):
    sys.exit("Python 3.10 or newer is needed, %s is %s: name another with make PYTHON=python3.12"
             % (sys.executable, sys.version.split()[0]))
endef

define REQUIREMENTS
import configparser, sys
config = configparser.ConfigParser()
config.read("setup.cfg")
print(config["options"]["install_requires"], *(config["options.extras_require"][extra] for extra in sys.argv[1:]))
endef

export CHECK_PYTHON REQUIREMENTS

# The project itself is not installed: a copy in .venv would shadow the files being edited.
# READY is touched last, so that an interrupted install starts afresh.
$(READY): setup.cfg
	@$(PYTHON) -c "$$CHECK_PYTHON"
	$(PYTHON) -m venv --clear .venv
	@.venv/bin/python -c "$$REQUIREMENTS" test > .venv/requirements.txt
	.venv/bin/python -m pip install --prefer-binary -r .venv/requirements.txt
	@touch $@

# The peers, on top of it.
$(BENCH): $(READY)
	@.venv/bin/python -c "$$REQUIREMENTS" bench > .venv/requirements_bench.txt
	.venv/bin/python -m pip install --prefer-binary -r .venv/requirements_bench.txt
	@touch $@
