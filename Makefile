# make demo   the quickstart on bundled digits: a table here, pictures in out/
# make test   the test suite
#
# Both use .venv, which this file owns: made when it is missing, unfinished or older than setup.cfg.
# Another interpreter: make demo PYTHON=python3.12

PYTHON ?= python3
READY := .venv/ready

.PHONY: demo test

demo: $(READY)
	.venv/bin/python -m examples.quickstart

test: $(READY)
	.venv/bin/python -m pytest

define CHECK_PYTHON
import sys
if sys.version_info < (3, 10):
    sys.exit("Python 3.10 or newer is needed, %s is %s: name another with make PYTHON=python3.12"
             % (sys.executable, sys.version.split()[0]))
endef

define REQUIREMENTS
import configparser
config = configparser.ConfigParser()
config.read("setup.cfg")
print(config["options"]["install_requires"], config["options.extras_require"]["test"])
endef

export CHECK_PYTHON REQUIREMENTS

# The project itself is not installed: a copy in .venv would shadow the files being edited.
# READY is touched last, so that an interrupted install starts afresh.
$(READY): setup.cfg
	@$(PYTHON) -c "$$CHECK_PYTHON"
	$(PYTHON) -m venv --clear .venv
	@.venv/bin/python -c "$$REQUIREMENTS" > .venv/requirements.txt
	.venv/bin/python -m pip install --prefer-binary -r .venv/requirements.txt
	@touch $@
