"""Work shared among processes, a core each, which read arrays from one file.

A process that this one starts anew works on every system, and holds none of its locks.
"""

import contextlib
import hashlib
import math
import mmap
import multiprocessing
import os
import pickle
import signal
import tempfile
import time
from multiprocessing import connection
from pathlib import Path

import joblib

ALIGNED = 64  # bytes: arrays begin at multiples of it
LIMITS = ("OMP", "OPENBLAS", "MKL", "NUMBA")  # whose threads are one a process
WAIT = 0.02  # seconds until a file is looked for again


def cores():
    """The number of cores that this process may use."""
    return joblib.cpu_count()


class Team:
    """Processes that share work, as long as the with statement lasts.

        with Team(2) as team:
            for i, one in team.each(work, given, 10):
                ...

    jobs: the number of processes; with one and no end, the work is done here. end: the
    time.perf_counter() at which it is given up. folder: where processes leave what
    others may use, see computed_once, or None.
    """

    def __init__(self, jobs, end=math.inf):
        self.jobs = jobs
        self.end = end
        self.folder = None
        self._team = {}
        self._count = 0

    def __enter__(self):
        if self.jobs > 1 or time.perf_counter() < self.end < math.inf:
            self._home = tempfile.TemporaryDirectory(
                prefix="grassmann-classify-", ignore_cleanup_errors=True
            )
            self.folder = Path(self._home.name)
            self._team = _started(self.jobs)
        return self

    def __exit__(self, *error):
        for process in self._team.values():
            process.terminate()
        for pipe, process in self._team.items():
            process.join()
            pipe.close()
        if self.folder:
            self._home.cleanup()

    def each(self, work, given, n):
        """(i, one) for each that work(given, i, seconds) yields, then (i, None).

        For i = 0..n-1 in this order, or until the end; seconds: until then. work and
        what it yields are pickled; given too, but for its arrays, which all processes
        read from one file. ValueError if a process dies.
        """
        if not self._team:
            return self._in_turn(work, given, n)
        return _in_order(self._arrivals(work, given, n))

    def _in_turn(self, work, given, n):
        for i in range(n):
            if time.perf_counter() > self.end:
                return
            for one in work(given, i, math.inf):
                yield i, one
            yield i, None

    def _arrivals(self, work, given, n):
        """(i, one) as they come; each process takes the next i when it is done with one."""
        self._count += 1
        path = self.folder / f"given{self._count}"
        told = work, *_packed(given, path), path
        new = {*self._team}  # which have not been told
        todo = iter(range(n))
        busy = {}

        def hand(pipe):
            i = next(todo, None)
            if i is None or time.perf_counter() > self.end:
                return
            if pipe in new:
                pipe.send(told)
                new.remove(pipe)
            pipe.send((i, self.end - time.perf_counter()))
            busy[pipe] = i

        for pipe in self._team:
            hand(pipe)
        while busy:
            left = None
            if self.end < math.inf:
                left = max(0, self.end - time.perf_counter())
            ready = connection.wait([*busy], left)
            if time.perf_counter() > self.end:
                return
            for pipe in ready:
                one = self._received(pipe)
                yield busy[pipe], one
                if one is None:
                    del busy[pipe]
                    hand(pipe)
        with contextlib.suppress(OSError):  # some systems keep files in use
            path.unlink()

    def _received(self, pipe):
        try:
            one, error = pipe.recv()
        except (EOFError, OSError):
            process = self._team[pipe]
            process.join()
            raise ValueError(
                f"a process ended with status {process.exitcode}, perhaps for want of "
                "memory: --jobs 1 needs the least"
            ) from None
        if error is not None:
            raise error
        return one


def _in_order(arrivals):
    """Those of 0 as they come, then those of 1, ..."""
    waiting = {}
    now = 0
    for i, one in arrivals:
        waiting.setdefault(i, []).append(one)
        while waiting.get(now):
            one = waiting[now].pop(0)
            yield now, one
            now += one is None


def _started(number):
    """{pipe: process} of processes that wait for work, with Ctrl-C left to this one."""
    context = multiprocessing.get_context("spawn")
    team = {}
    with _one_thread_each(), _without_interrupts():
        for _ in range(number):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there,), daemon=True)
            process.start()
            there.close()
            team[here] = process
    return team


@contextlib.contextmanager
def _one_thread_each():
    """Processes that start now have one thread each for products and compiled loops."""
    names = [f"{name}_NUM_THREADS" for name in LIMITS]
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _without_interrupts():
    """Processes that start now leave Ctrl-C to this one, which ends them."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # only the main thread may ask
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(pipe):
    """Do the work that comes through the pipe, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):  # the other end is closed
        while True:
            told = pipe.recv()
            if len(told) > 2:
                work, *packed = told
                given = _unpacked(*packed)
                continue
            try:
                for one in work(given, *told):
                    pipe.send((one, None))
                pipe.send((None, None))
            except Exception as error:
                pipe.send((None, error))


def _packed(given, path):
    """The pickle of an object without its arrays, which go to a file; their lengths."""
    lengths = []
    with open(path, "wb") as file:

        def put(buffer):
            raw = buffer.raw()
            file.write(raw)
            file.write(bytes(-len(raw) % ALIGNED))
            lengths.append(len(raw))

        head = pickle.dumps(given, protocol=5, buffer_callback=put)
        if not any(lengths):  # an empty file cannot be mapped
            file.write(b"\0")
    return head, lengths


def _unpacked(head, lengths, path):
    """The object; its arrays lie in the file until they are written to."""
    with open(path, "rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    buffers = []
    start = 0
    for length in lengths:
        buffers.append(whole[start : start + length])
        start += length + -length % ALIGNED
    return pickle.loads(head, buffers=buffers)


def computed_once(folder, key, compute, wait=True):
    """What compute() gives, by the first of all processes that asks for this key.

    folder: that of the processes; None: there is one alone. wait: for another that is
    at it; else this gives None, and one may do something else before.
    """
    if folder is None:
        return compute()
    path = folder / hashlib.blake2b(repr(key).encode(), digest_size=16).hexdigest()
    arrays = path.with_suffix(".arrays")
    done = path.with_suffix(".done")
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        while path.exists() and not done.exists():
            if not wait:
                return None
            time.sleep(WAIT)
        if not done.exists():  # it failed: here it may say so again
            return compute()
        return _unpacked(*pickle.loads(done.read_bytes()), arrays)
    try:
        found = compute()
        part = path.with_suffix(".part")
        part.write_bytes(pickle.dumps(_packed(found, arrays)))
        part.rename(done)
    except BaseException:
        path.unlink()
        raise
    return found
