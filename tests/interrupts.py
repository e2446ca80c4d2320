"""What commits, and Ctrl-C at chosen steps of it: the calls, lines and returns in the
toolkit's own files, and where Python exchanges handlers of signals. No clock decides.
"""

import copy
import functools
import gc
import json
import os
import shutil
import signal
import sys
import time
from collections import namedtuple
from contextlib import suppress
from pathlib import Path

import numpy as np

import grassmann_sc as core
from grassmann_sc import files, learn
from grassmann_sc.large import codes, streams
from grassmann_sc.large.codes import load_codes, write_codes

ROOT = Path(core.__file__).parent


@functools.cache
def is_watched(filename):
    """Are the lines of this file steps?"""
    return filename == signal.__file__ or Path(filename).parent in (
        ROOT,
        ROOT / "baselines",
        ROOT / "large",
    )


def count(call):
    """The number of steps of a call."""
    interrupter = Interrupter(())
    interrupter.run(call)
    return interrupter.step


def interrupt(call, at, again=0):
    """The KeyboardInterrupt that came out of a call with a Ctrl-C before its step
    number at, or None; another one comes so many steps later.
    """
    interrupter = Interrupter((at, at + again) if again else (at,))
    return interrupter.run(call)


class Interrupter:
    """Sends Ctrl-C at these steps."""

    def __init__(self, at):
        self.at = [*at]
        self.step = 0

    def run(self, call):
        """The KeyboardInterrupt that came out. The handler of SIGINT must be as it was
        before.
        """
        tracing = sys.gettrace()
        profiling = sys.getprofile()
        # of a Ctrl-C in a generator that ends, which Python forgets
        hook = sys.unraisablehook
        sys.unraisablehook = lambda what: None
        before = signal.signal(signal.SIGINT, self.handle)
        raised = None
        try:
            sys.settrace(self.trace)
            call()
        except KeyboardInterrupt as error:
            raised = error
        finally:
            sys.setprofile(None)
            sys.settrace(tracing)
            handler = signal.signal(signal.SIGINT, before)
            sys.setprofile(profiling)
            # what is half open ends here, where nobody hears it: elsewhere its error
            # would be told while Python parses, which 3.11 cannot bear
            forget_frames(raised)
            gc.collect(1)
            sys.unraisablehook = hook
        assert handler == self.handle, f"the handler of SIGINT became {handler}"
        return raised

    def handle(self, number, frame):
        """Raise, as Python does by default. Python stops tracing where a trace function
        raises: the rest of the interrupts come at the calls that follow.
        """
        sys.setprofile(self.profile)
        raise KeyboardInterrupt

    def trace(self, frame, event, arg):
        if not is_watched(frame.f_code.co_filename):
            return None
        # Python 3.11 may spoil its stack where a call is interrupted before its first line
        if event != "call":
            self.count()
        return self.trace

    def profile(self, frame, event, arg):
        here = sys.gettrace() is None and frame.f_code.co_filename != __file__
        if here and event != "call":
            self.count()

    def count(self):
        self.step += 1
        if self.step in self.at:
            signal.raise_signal(signal.SIGINT)


def forget_frames(error):
    """Let go of what tracebacks keep: files of the call, open archives."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__


# ------------------------------------------------------------------------- what commits

# start(): what a call begins with; call(thing); check(thing, error): it is as before
# the call or as after it, as after it if no error came out; has_steps: False for a call
# that interrupts itself
Subject = namedtuple("Subject", "start call check has_steps", defaults=[True])
SMALL = [  # module, name, value while Subjects are made and called
    (codes, "MOST_NUMBERS", 12 * 64),  # blocks of 64 rows
]
N_ITER = 2  # of gdl
N_ATOMS = 12  # more than a batch has samples, so that the first one waits


def interrupt_subject(subject, interrupt_call):
    """Check a Subject after interrupt_call(call), which sends Ctrl-C and returns what came out."""
    thing = subject.start()
    error = interrupt_call(functools.partial(subject.call, thing))
    if error is not None:
        if not isinstance(error, KeyboardInterrupt):
            raise error
        forget_frames(error)
    subject.check(thing, error)


@functools.cache
def subject(name):
    """The Subject of this name. It works in the present folder."""
    kind, _, variant = name.partition(", ")
    if kind == "uninterrupted":
        call = job_that_interrupts if variant else job_of_two
        return Subject(list, call, check_job, has_steps=not variant)
    if kind == "write_codes":
        return subject_of_codes(variant == "folder")
    if kind == "fit":
        return subject_of_fit(*LEARNERS[variant])
    if kind in CALLS:
        return subject_of_learner(*LEARNERS[variant], *CALLS[kind])
    return subject_of_file() if kind == "save" else subject_of_gdl()


def job_of_two(done):
    files.uninterrupted(lambda: done.extend(part.start for part in core.slices(2, 1)))


def job_that_interrupts(done):
    def job():
        done.append(0)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1e-3)
        done.append(1)

    files.uninterrupted(job)


def check_job(done, error):
    time.sleep(2e-3)  # a job that runs on ends
    seen = [*done]
    assert seen == [0, 1] or error is not None and not seen, f"a job was left at {seen}"


# ---------------------------------------------------------------- learners


def samples(d, p, dtype):
    return [core.random_subspaces(10, d, p, i).astype(dtype) for i in range(5)]


LEARNERS = {  # options, batches
    "matrices": (dict(lam=0.2, init="kmeans"), samples(8, 2, np.float64)),
    "rows": (dict(lam=0.2, rank=2), samples(40, 1, np.float32)),
    "local": (
        dict(n_neighbors=2, init="random", forgetting=0.5),
        samples(8, 2, np.float64),
    ),
}
CALLS = {  # batches before the call, and the call
    "first collect": (1, lambda learner, batch: learner.collect(batch)),
    "collect": (3, lambda learner, batch: learner.collect(batch)),
    "update": (4, lambda learner, batch: learner.update()),
    "partial_fit": (3, lambda learner, batch: learner.partial_fit(batch)),
    "merge": (
        3,
        lambda learner, batch: learner.merge(learner.fork().collect(batch)) and None,
    ),
}


def new_learner(options):
    return streams.OnlineGDL(N_ATOMS, rng=1, **options)


NAMES = [
    "uninterrupted",
    "uninterrupted, interrupted by its job",
    "save",
    "gdl",
    "write_codes, file",
    "write_codes, folder",
]
NAMES += [f"{call}, {kind}" for kind in LEARNERS for call in ("fit", *CALLS)]


def subject_of_learner(options, X, n_before, call):
    """Of a call of a learner that has collected so many batches."""
    begun = new_learner(options)
    for i in range(n_before):
        begun.collect(X[i])
        if i == 1:
            begun.update()
    after = copy.deepcopy(begun)
    call(after, X[3])
    ends = [
        (state_of(learner), state_of(copy.deepcopy(learner).partial_fit(X[4])))
        for learner in (begun, after)
    ]

    def check(learner, error):
        state = state_of(learner)
        same = [
            end for before_end, end in ends[error is None :] if alike(state, before_end)
        ]
        assert same, "a stream was left between before and after"
        assert alike(state_of(learner.partial_fit(X[4])), same[0]), (
            "a stream ends with other bits"
        )

    return Subject(
        lambda: copy.deepcopy(begun), lambda learner: call(learner, X[3]), check
    )


def state_of(learner):
    """A copy of all that a learner is, texts without where its fit is."""
    state = {name: np.array(array) for name, array in learner.state().items()}
    counts = json.loads(str(state["counts"]))
    counts.pop("place")
    return state | {"counts": np.array(json.dumps(counts, sort_keys=True))}


def alike(state, other, but=()):
    return all(
        np.array_equal(state[name], other[name]) for name in state if name not in but
    )


def subject_of_fit(options, X):
    """Of a fit with a checkpoint; the oracle stops between batches by itself."""
    X = X[:3]
    path = "fit.npz"

    def stopping(n):
        for i, batch in enumerate(X):
            if i == n:
                raise KeyboardInterrupt
            yield batch
        if n == len(X):
            raise KeyboardInterrupt

    def stopped(n):
        learner = new_learner(options)
        with suppress(KeyboardInterrupt):
            learner.fit(stopping(n))
        return learner

    def start():
        with suppress(FileNotFoundError):
            os.unlink(path)
        return new_learner(options)

    def go_on(learner):
        return state_of(learner.partial_fit(X[0]))

    order = ("rng",)  # of the next epoch
    whole = [state_of(stopped(n)) for n in range(len(X) + 2)]
    ends = [go_on(stopped(n)) for n in range(len(X) + 2)]

    def check(learner, error):
        n_done = json.loads(str(learner.state()["counts"]))["place"]["n_done"]
        same = [
            n for n in (n_done, len(X) + 1) if alike(state_of(learner), whole[n], order)
        ]
        assert same, f"a stream was left between batches {n_done} and {n_done + 1}"
        assert error or same[-1] == len(X) + 1, "a fit ended too early"
        message = str(error or "")
        assert not message or f"from {n_done} batches" in message, (
            f"{n_done} batches are done: {message}"
        )
        assert alike(go_on(learner), ends[same[-1]], order), (
            "a stream ends with other bits"
        )
        resume = path if os.path.exists(path) else None
        other = new_learner(options).fit(iter(X), resume=resume)
        assert alike(state_of(other), whole[-1], order), (
            "a resumed fit ends with other bits"
        )

    return Subject(
        start,
        lambda learner: learner.fit(iter(X), checkpoint=path, checkpoint_every=1),
        check,
    )


# ---------------------------------------------------------------- files


def subject_of_codes(sparse):
    """Of codes that are written in three blocks."""
    path = "codes_of_interrupts"
    X = core.random_subspaces(160, 6, 2, 0)
    D = core.random_subspaces(9, 6, 2, 1)
    expected = core.gsc(X, D, 0.3)

    def start():
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            os.unlink(path)

    def write(start=0):
        return write_codes(path, X, D, 0.3, sparse_output=sparse, start=start)

    def check(nothing, error):
        if os.path.exists(path) and (not sparse or os.listdir(path)):
            codes = (
                core.dense_codes(load_codes(path)) if written(path) else expected[:0]
            )
            assert np.array_equal(codes, expected[: len(codes)]), (
                "written codes are others"
            )
            assert error or len(codes) == len(X), "codes are missing"
        else:
            assert error, "nothing was written"
        assert write("resume") == len(X), "it was not gone on to the end"
        codes = core.dense_codes(load_codes(path))
        assert np.array_equal(codes, expected), (
            "codes that were gone on with are others"
        )

    def written(path):
        """Is there a part from row 0 on?"""
        return not sparse or any(name.endswith("0.npz") for name in os.listdir(path))

    return Subject(start, lambda nothing: write(), check)


def subject_of_file():
    """Of a dictionary that replaces another."""
    old, new = (core.random_subspaces(4, 6, 2, i) for i in range(2))
    path = "saved_by_interrupts.npz"

    def check(nothing, error):
        loaded = files.load(path).atoms
        allowed = [new] if error is None else [old, new]
        assert any(np.array_equal(loaded, atoms) for atoms in allowed), (
            "a file is another"
        )

    return Subject(
        lambda: files.save(path, old), lambda nothing: files.save(path, new), check
    )


# ---------------------------------------------------------------- learning


def subject_of_gdl():
    """Of gdl, which returns the best so far, and whose checkpoint is resumed."""
    X = core.random_subspaces(30, 6, 2, 0)
    path = "gdl.npz"
    learning = functools.partial(learn.gdl, X, 4, 0.2, tol=0, rng=1)
    whole = [learning(n_iter=n) for n in range(N_ITER + 1)]

    def start():
        with suppress(FileNotFoundError):
            os.unlink(path)
        return []

    def check(results, error):
        assert results or error, "gdl returned nothing"
        for learned in results:
            same = whole[learned.n_iter]
            for ours, theirs in zip(learned, same):
                assert np.array_equal(ours, theirs), (
                    "gdl returned others at an interrupt"
                )
            ended = learned.stopped == "interrupted" or learned.n_iter == N_ITER
            assert ended, "gdl ended too early"
        resume = path if os.path.exists(path) else None
        resumed = learning(n_iter=N_ITER, resume=resume)
        assert np.array_equal(resumed.atoms, whole[-1].atoms), (
            "a resumed gdl has other atoms"
        )

    def call(results):
        results.append(learning(n_iter=N_ITER, checkpoint=path))

    return Subject(start, call, check)
