"""Ctrl-C, once and twice, at steps of all that commits: what it leaves is as before the
call or as after it, and ends, gone on with, as an undisturbed run. Steps are lines: no
clock decides.
"""

import functools

import pytest

import interrupts
from grassmann_sc import files

N_STEPS = 14  # of each call, spread over all of it; make stress draws others
LATER = (0, 1, 5)  # steps to a second Ctrl-C, or none


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Small pieces, in a folder that is thrown away."""
    monkeypatch.chdir(tmp_path)
    for module, name, value in interrupts.SMALL:
        monkeypatch.setattr(module, name, value)


@pytest.mark.filterwarnings("ignore:interrupted")
@pytest.mark.parametrize("name", interrupts.NAMES)
def test_what_ctrl_c_leaves_is_as_before_the_call_or_as_after_it(name, small):
    subject = interrupts.subject(name)
    n = interrupts.count(functools.partial(subject.call, subject.start()))
    for i, at in enumerate(range(1, n + 1, max(1, n // N_STEPS))):
        interrupt = functools.partial(interrupts.interrupt, at=at, again=LATER[i % 3])
        interrupts.interrupt_subject(subject, interrupt)


@pytest.mark.parametrize("again", [0, 1, 2, 5, 40])
def test_a_job_is_whole_or_not_begun_at_every_step(again, small):
    """It raises where it comes, wherever handlers are exchanged."""

    def two(done):
        files.uninterrupted(lambda: done.extend([done.append(1), 2]))

    n = interrupts.count(lambda: two([]))
    outcomes = set()
    for at in range(1, n + 1):
        done = []
        error = interrupts.interrupt(lambda: two(done), at, again)
        assert error is not None or at + again > n
        outcomes.add(tuple(done))
    assert outcomes == {(), (1, None, 2)}
