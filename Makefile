# make demo    bundled digits: the quickstart, then every method; tables here, pictures in out/
# make install all extras, of which make demo needs one: videos, HOG and LBP, many machines
# make test    ruff's rules and format, then the test suite, in two processes of one BLAS thread
# make types   mypy on the hints of public signatures; what it says depends on NumPy's own hints
# make bench   figures of speed and accuracy, beside their targets and the peers' (many minutes)
#              DATA="a.npz b.npz:6" adds data of one's own to the lasso's, see benchmarks/lasso.py
# make pages   docs/html: the guide, examples with their output and pictures, the reference; looks for
#              dead links, and leaves the pictures of README and guide in docs/pictures
# make stress  hostile inputs, files, folders, disks, kills, interrupts and forks, and oracles of
#              coding, learning and methods: tests/stress, then all tests of the suite that draw
#              their problems, many times; six minutes; SEED=1 draws others
# make mutate  small changes of the code, one by one, each under the tests that concern it; prints
#              those that no test notices; an hour; SEED=1 draws others, COUNT=20, FILES="learn.py"
#
# All use .venv, which this file owns. They create it once, and again after setup.cfg changes, with
# what make demo needs; the others add what they need.
# Another interpreter: make demo PYTHON=python3.12

PYTHON ?= python3
VENV_PYTHON := $(if $(filter Windows_NT,$(OS)),.venv/Scripts/python.exe,.venv/bin/python)
DEMO := .venv/demo
ALL := .venv/all
READY := .venv/ready
BENCH := .venv/bench
DOCS := .venv/docs

.PHONY: demo install test types bench pages stress mutate

demo: $(DEMO)
	$(VENV_PYTHON) -m examples.quickstart
	$(VENV_PYTHON) -m examples.table_digits

install: $(ALL)

# else each of the processes that tests start would compile all modules
test stress: export PYTHONDONTWRITEBYTECODE :=
test: $(READY)
	$(VENV_PYTHON) -m ruff check $$($(VENV_PYTHON) -c "from docs.sources import own_files as f; print(*f())")
	$(VENV_PYTHON) -m ruff format --check --quiet $$($(VENV_PYTHON) -c "from docs.sources import own_files as f; print(*f())")
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV_PYTHON) -m pytest -n 2 --dist loadfile

types: $(READY)
	$(VENV_PYTHON) tests/check_types.py

bench: $(BENCH)
	$(VENV_PYTHON) -m benchmarks.latency
	$(VENV_PYTHON) -m benchmarks.gram
	$(VENV_PYTHON) -m benchmarks.lasso $(DATA:%=--data %)
	$(VENV_PYTHON) -m benchmarks.lasso --growth
	$(VENV_PYTHON) -m benchmarks.coding
	$(VENV_PYTHON) -m benchmarks.kernels
	$(VENV_PYTHON) -m benchmarks.learning
	$(VENV_PYTHON) -m benchmarks.baselines --quick
	$(VENV_PYTHON) -m benchmarks.videos
	$(VENV_PYTHON) -m benchmarks.scale --sizes 1000 10000 100000 --kills 3
	$(VENV_PYTHON) -m benchmarks.accuracy
	$(VENV_PYTHON) -m benchmarks.agreement

pages: $(DOCS)
	$(VENV_PYTHON) -m docs.layout
	$(VENV_PYTHON) -m sphinx -W --keep-going -q -b html docs docs/html
	$(VENV_PYTHON) -m docs.check_pages docs/html

STRESS := -m pytest -n 2 --dist loadfile --disable-warnings --hypothesis-profile=stress \
	--hypothesis-seed=$(or $(SEED),0) -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# The second half runs whatever the first says; make fails if either does.
stress: export OMP_NUM_THREADS := 1
stress: export OPENBLAS_NUM_THREADS := 1
stress: $(READY)
	$(VENV_PYTHON) $(STRESS) tests/stress; first=$$?; \
	$(VENV_PYTHON) $(STRESS) -m hypothesis tests && exit $$first

mutate: $(READY)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV_PYTHON) tests/mutate.py \
		--seed $(or $(SEED),0) --count $(or $(COUNT),100) $(FILES)

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
# DEMO is touched last, so that an interrupted install starts afresh.
$(DEMO): setup.cfg
	@$(PYTHON) -c "$$CHECK_PYTHON"
	$(PYTHON) -m venv --clear .venv
	@$(VENV_PYTHON) -c "$$REQUIREMENTS" sklearn > .venv/requirements_demo.txt
	$(VENV_PYTHON) -m pip install --prefer-binary -r .venv/requirements_demo.txt
	@touch $@

# What every module needs, on top of it.
$(ALL): $(DEMO)
	@$(VENV_PYTHON) -c "$$REQUIREMENTS" image video strategies distributed > .venv/requirements_all.txt
	$(VENV_PYTHON) -m pip install --prefer-binary -r .venv/requirements_all.txt
	@touch $@

# What tests need, on top of it.
$(READY): $(DEMO)
	@$(VENV_PYTHON) -c "$$REQUIREMENTS" dev > .venv/requirements.txt
	$(VENV_PYTHON) -m pip install --prefer-binary -r .venv/requirements.txt
	@touch $@

# What makes pages, on top of it.
$(DOCS): $(READY)
	@$(VENV_PYTHON) -c "$$REQUIREMENTS" docs > .venv/requirements_docs.txt
	$(VENV_PYTHON) -m pip install --prefer-binary -r .venv/requirements_docs.txt
	@touch $@

# The peers, on top of it.
$(BENCH): $(READY)
	@$(VENV_PYTHON) -c "$$REQUIREMENTS" bench > .venv/requirements_bench.txt
	$(VENV_PYTHON) -m pip install --prefer-binary -r .venv/requirements_bench.txt
	@touch $@
