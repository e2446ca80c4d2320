"""Jobs that Ctrl-C does not interrupt: whole or not begun, then it is handled."""

import os
import signal
import threading

import pytest

from grassmann_sc import files


@pytest.fixture
def raising():
    """A handler of Ctrl-C that raises; it must be there in the end."""

    def interrupt(number, frame):
        raise KeyboardInterrupt(number)

    before = signal.signal(signal.SIGINT, interrupt)
    yield
    assert signal.signal(signal.SIGINT, before) == interrupt


@pytest.mark.parametrize("times", [1, 2, 10])
def test_a_job_that_is_pressed_is_done_before_the_signal_is_handled(times, raising):
    done = []

    def job():
        for i in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            done.append(i)

    with pytest.raises(KeyboardInterrupt, match=f"^{int(signal.SIGINT)}$"):
        files.uninterrupted(job)
    assert done == [*range(times)]


def test_a_signal_waits_for_the_outermost_of_nested_jobs(raising):
    done = []

    def inner():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("inner")

    def outer():
        files.uninterrupted(inner)
        done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        files.uninterrupted(outer)
    assert done == ["inner", "outer"]


@pytest.mark.parametrize("pressed", [False, True])
def test_an_error_of_the_job_comes_out_and_is_the_context_of_a_signal(pressed, raising):
    def job():
        if pressed:
            os.kill(os.getpid(), signal.SIGINT)
        raise ArithmeticError

    with pytest.raises(KeyboardInterrupt if pressed else ArithmeticError) as caught:
        files.uninterrupted(job)
    assert isinstance(caught.value.__context__, ArithmeticError) == pressed


def test_a_handler_that_does_not_raise_is_called_once_after_the_job():
    came = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:

        def job():
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
            return [*came]

        assert files.uninterrupted(job) == [] and came == [signal.SIGINT]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert files.uninterrupted(job) == came == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_a_job_just_runs():
    done = []
    thread = threading.Thread(
        target=lambda: done.append(files.uninterrupted(threading.get_ident))
    )
    thread.start()
    thread.join()
    assert done == [thread.ident]
