"""Ctrl-C of the campaign: any call at any moment, after which cores, threads and
results are as ever; and what commits, once and twice, at every step and at random: the
state after it is that before the call or that after it, and what goes on from there
ends as an undisturbed run.
"""

import atexit
import functools
import itertools
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import numpy as np

import grassmann_sc as core
import presses as chosen
from benchmarks import campaign_calls as calls
from benchmarks.campaign_calls import failing, hold, rng_of
from benchmarks.common import timed

SOON = 0.04  # seconds of a call that is interrupted

affinity = getattr(os, "sched_getaffinity", lambda process: None)


# ----------------------------------------------------------------------------- any call


@functools.cache
def interruptible():
    """{name: (call, its seconds, its result)} of calls that are soon done."""
    from benchmarks.campaign_numbers import MIDDLING, middling

    m = middling(np.random.default_rng(0))
    found = {}
    for name, function in MIDDLING.items():
        call = functools.partial(function, m)
        call()  # compiles
        seconds, result = timed(call)
        if seconds < SOON:
            found[name] = call, seconds, result
    return found


def interrupts(seed, case):
    """A Ctrl-C at some moment of a call; then cores, threads and results are as ever."""
    rng = rng_of("interrupts", seed, case)
    name = list(interruptible())[case % len(interruptible())]
    call, seconds, expected = interruptible()[name]
    cores = affinity(0)
    delay = max(1e-6, float(rng.uniform(0, 1.2 * seconds)))
    with failing(
        f"{name}, interrupted after {1000 * delay:.2f} of {1000 * seconds:.2f} ms"
    ):
        error = pressed(call, [delay])
        error = None if isinstance(error, KeyboardInterrupt) else error
        what = f"{name}: {type(error).__name__} in place of KeyboardInterrupt"
        hold(error is None, f"{what}: {error}", what)
        hold(affinity(0) == cores, f"other cores: {affinity(0)} in place of {cores}")
        hold(calls.worst_difference(call(), expected) == 0, "other results after it")
        hold(pool_works(), "the threads of the pool are stuck")


def pool_works():
    """Do two blocks run at the same time, if two threads are allowed?"""
    meeting = threading.Barrier(2)
    try:
        if core.thread_count() > 1:
            core.run_blocks(lambda block: meeting.wait(5), 2, 1)
    except threading.BrokenBarrierError:
        return False
    return True


# ---------------------------------------------------------------------------- at random


PRESSER = """
import os, signal, sys, time
for line in sys.stdin:
    for delay in map(float, line.split()):
        time.sleep(delay)
        os.kill(os.getppid(), signal.SIGINT)
    print(flush=True)
"""


@functools.cache
def presser(parent):
    """A child of this process that presses Ctrl-C, as a user does: from outside."""
    child = subprocess.Popen(
        [sys.executable, "-c", PRESSER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    atexit.register(child.kill)
    return child


def pressed(call, delays):
    """What the call raised, or None, with a Ctrl-C after so many seconds and another so
    many after that, in the call or after it.
    """
    child = presser(os.getpid())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    raised = KeyboardInterrupt()

    def wait():
        select.select([child.stdout], [], [], 60)  # until all presses have come

    with suppress(KeyboardInterrupt):  # one for each press, one for what is between
        with suppress(KeyboardInterrupt):
            with suppress(KeyboardInterrupt):
                try:
                    child.stdin.write((" ".join(map(str, delays)) + "\n").encode())
                    call()
                    raised = None
                except (KeyboardInterrupt, Exception) as error:
                    raised = error
                wait()
            wait()
        wait()
    child.stdout.read(1)
    left = signal.signal(signal.SIGINT, before)
    hold(left is signal.default_int_handler, f"the handler of SIGINT became {left}")
    return raised


# ------------------------------------------------------------------------- what commits


NEXT = 12  # steps that a second press may come later
LONG = 3500  # steps of a call of which some are tried, others for each seed
STRIDE = 16


def presses(seed, case):
    """A Ctrl-C, or two, at a step of what commits, in another order for each seed;
    every fourth time, and after the last step, at a random moment.
    """
    begin()
    rng = rng_of("presses", seed, case)
    i = case - case // 4
    if case % 4 < 3 and i < len(all_steps(seed)):
        name, at, twice = all_steps(seed)[i]
        again = int(rng.integers(1, NEXT)) * twice
        what = f"pressed at step {at}" + f" and {again} later" * twice
        press = functools.partial(chosen.press, at=at, again=again)
    else:
        name = str(rng.choice(chosen.NAMES))
        seconds = seconds_of(name)
        delays = [float(rng.uniform(0, 1.2 * seconds))]
        if rng.random() < 0.5:
            delays.append(float(rng.exponential(0.2 * seconds)))
        what = f"pressed after {' and '.join(f'{1000 * delay:.2f}' for delay in delays)} ms"
        press = functools.partial(pressed, delays=delays)
    with failing(f"{name}, {what}"):
        chosen.press_subject(chosen.subject(name), press)


@functools.cache
def begin():
    """Make pieces small, and leave out the signals without a handler, whose steps do
    nothing.
    """
    for module, name, value in chosen.SMALL:
        setattr(module, name, value)


@functools.cache
def all_steps(seed):
    """(name, step, is it pressed twice?) of every step of all subjects, every STRIDE-th
    of long ones, in a random order.
    """
    every = []
    for name in chosen.NAMES:
        subject = chosen.subject(name)
        if subject.has_steps:
            subject.call(subject.start())  # compiles
            n = chosen.count(functools.partial(subject.call, subject.start()))
            steps = (
                range(1, n + 1) if n < LONG else range(1 + seed % STRIDE, n + 1, STRIDE)
            )
            every += itertools.product([name], steps, [False, True])
    return [every[i] for i in np.random.default_rng(seed).permutation(len(every))]


@functools.cache
def seconds_of(name):
    subject = chosen.subject(name)
    things = [subject.start() for _ in range(3)]
    return (
        min(timed(subject.call, thing)[0] for thing in things)
        if subject.has_steps
        else SOON
    )
