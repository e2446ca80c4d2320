"""Work shared among processes, a core each, which read arrays from one file.

A process that this one starts anew works on every system, and holds none of its locks.
"""

import contextlib
import hashlib
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
import numpy as np

ALIGNED = 64  # bytes: arrays begin at multiples of it
LIMITS = ("OMP", "OPENBLAS", "MKL", "NUMBA")  # whose threads are one a process
ARRAYS = "arrays"
WAIT = 0.02  # seconds until a file is looked for again


def cores():
    """The number of cores that this process may use."""
    return joblib.cpu_count()


def in_turn(work, given, n):
    """(i, one) of each that work(given, i) yields, then (i, None), for i = 0..n-1."""
    for i in range(n):
        for one in work(given, i):
            yield i, one
        yield i, None


def in_processes(work, given, n, jobs, end):
    """The same, computed by so many processes, in the same order.

    work and what it yields are pickled; given too, but for its arrays, which all
    processes read from one file. work(given, i, seconds) is told how long there is
    until end, a time.perf_counter(), where all stop. ValueError if a process dies.
    """
    with tempfile.TemporaryDirectory(
        prefix="grassmann-classify-", ignore_cleanup_errors=True
    ) as folder:
        head, lengths = _packed(given, Path(folder) / ARRAYS)
        team = _started(min(jobs, n), work, folder, head, lengths)
        try:
            yield from _in_order(_arrivals(team, n, end))
        finally:
            for process in team.values():
                process.terminate()
            for pipe, process in team.items():
                process.join()
                pipe.close()


def _arrivals(team, n, end):
    """(i, one) as they come; each process takes the next i when it is done with one."""
    todo = iter(range(n))
    busy = {}

    def hand(pipe):
        i = next(todo, None)
        if i is not None and time.perf_counter() < end:
            pipe.send((i, end - time.perf_counter()))
            busy[pipe] = i

    for pipe in team:
        hand(pipe)
    while busy:
        left = None if end == np.inf else max(0, end - time.perf_counter())
        ready = connection.wait([*busy], left)
        if not ready:
            return
        for pipe in ready:
            try:
                one, error = pipe.recv()
            except (EOFError, OSError):
                team[pipe].join()
                raise ValueError(
                    f"a process ended with status {team[pipe].exitcode}, perhaps for "
                    "want of memory: --jobs 1 needs the least"
                ) from None
            if error is not None:
                raise error
            yield busy[pipe], one
            if one is None:
                del busy[pipe]
                hand(pipe)


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


def _started(number, work, folder, head, lengths):
    """{pipe: process} of processes that wait for work, with Ctrl-C left to this one."""
    context = multiprocessing.get_context("spawn")
    team = {}
    with _one_thread_each(), _without_interrupts():
        for _ in range(number):
            here, there = context.Pipe()
            process = context.Process(
                target=_serve, args=(there, work, folder, head, lengths), daemon=True
            )
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


def _serve(pipe, work, folder, head, lengths):
    """Work on what comes through the pipe, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given = _unpacked(head, lengths, Path(folder) / ARRAYS)
    given.inputs.folder = Path(folder)
    with contextlib.suppress(EOFError, OSError):  # the other end is closed
        while True:
            i, seconds = pipe.recv()
            try:
                for one in work(given, i, seconds):
                    pipe.send((one, None))
            except Exception as error:
                pipe.send((None, error))
                return
            pipe.send((None, None))


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
        if not lengths:
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


def computed_once(folder, key, compute):
    """What compute() gives, by the first of all processes that asks for this key.

    folder: that of the processes; None: there is one alone.
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
