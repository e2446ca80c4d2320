"""A hostile campaign on the whole toolkit: python -m benchmarks.campaign, or make
campaign

Kinds of cases, drawn from the seed: at least so many of each as KINDS says, more if its
share of the time allows; a function (seed, case) for each in benchmarks/campaign_*.py
raises what went wrong. A kind runs in a process of its own, so that a crash or a hang
is one failed case and the next one follows. Prints a table, then the first failures of
each kind with what reproduces them; exit status 1 if a case failed or a kind is short
of cases.
"""

import importlib
import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, namedtuple

from examples.common import of_these, parsed

Kind = namedtuple("Kind", "room at_least share")  # share: of SECONDS
KINDS = {
    "inputs": Kind("inputs", 1400, 115),
    "coding": Kind("numbers", 650, 30),
    "oracles": Kind("oracles", 330, 30),
    "layouts": Kind("numbers", 400, 40),
    "damaged": Kind("files", 667, 30),
    "kills": Kind("numbers", 30, 38),
    "interrupts": Kind("interrupts", 2159, 60),
    "presses": Kind("interrupts", 1500, 45),
    "forks": Kind("numbers", 500, 45),
    "folders": Kind("folders", 16, 40),
    "disks": Kind("folders", 16, 32),
    "threads": Kind("numbers", 75, 15),
    "learning": Kind("learning", 400, 35),
    "weights": Kind("weights", 120, 20),
    "examples": Kind("examples", 100, 30),
    "application": Kind("application", 200, 60),
    "imports": Kind("copies", 8, 30),
    "dask": Kind("dask", 8, 40),
    "blas": Kind("blas", 50, 15),
    "estimators": Kind("estimators", 80, 40),
}
SECONDS = sum(kind.share for kind in KINDS.values())

options = parsed(
    __name__,
    of_these,
    "benchmarks.campaign",
    {
        "--seed": dict(type=int, default=0),
        "--seconds": dict(type=float, default=SECONDS, help="for all kinds"),
        "--only": dict(
            choices=KINDS,
            metavar="KIND",
            help=f"{', '.join(KINDS)}: one kind, in its share of the seconds",
        ),
        "--case": dict(type=int, help="with --only: one case, and its traceback"),
        "--show": dict(type=int, default=5, help="failures to print of each kind"),
        "--work": dict(type=float, nargs=3, help="for a child of the campaign alone"),
    },
)
if options and options.case is not None and options.only is None:
    sys.exit("--case needs --only")

from benchmarks.campaign_calls import Done, Failed, failing
from benchmarks.common import ROOT, header, n_cores, timed

# seconds until a child's first case is done: Numba may have to compile
START_LIMIT = 300
LIMIT = 60  # seconds of any other case
EXHAUSTED = "there are no more cases"


def main(options):
    if options.case is not None:
        with tempfile.TemporaryDirectory(prefix="campaign_") as folder:
            os.chdir(folder)
            case_function(options.only)(options.seed, options.case)
    elif options.work is not None:
        work(options.only, options.seed, *options.work)
    else:
        sys.exit(campaign(options))


def case_function(kind):
    return getattr(
        importlib.import_module(f"benchmarks.campaign_{KINDS[kind].room}"), kind
    )


def campaign(options):
    """Run the kinds, print what came out; the exit status."""
    header(f"campaign, seed {options.seed}")
    left = {options.only: KINDS[options.only]} if options.only else dict(KINDS)
    unit = options.seconds / SECONDS
    end = time.time() + sum(kind.share for kind in left.values()) * unit
    outcomes = {}
    shared = tempfile.TemporaryDirectory(prefix="campaign_")
    os.environ["CALLS"] = os.path.join(shared.name, "calls.pickle")
    print(f"{'kind':12}{'tried':>9}{'held':>9}{'failed':>9}{'seconds':>9}")
    while left:
        shares = sum(kind.share for kind in left.values())
        name = next(iter(left))
        seconds = max(end - time.time(), 0) * left.pop(name).share / shares
        taken, outcomes[name] = timed(
            run_kind, name, options.seed, seconds, KINDS[name].share * unit
        )
        held = outcomes[name].count(None)
        tried = len(outcomes[name])
        print(f"{name:12}{tried:9}{held:9}{tried - held:9}{taken:9.0f}", flush=True)
    return int(
        any([print_failures(name, outcomes[name], options) for name in outcomes])
    )


def run_kind(name, seed, seconds, share):
    """An outcome a case: (cause, message), None if it held. There are cases until the
    seconds are over and their least number is reached, at most for three times the
    share.
    """
    start = time.time()
    hard = start + 3 * share
    outcomes = []
    end = None
    while end is None and time.time() < hard:
        with tempfile.TemporaryDirectory(prefix="campaign_") as folder:
            end = run_child(name, seed, outcomes, (start + seconds, hard), folder)
    least = KINDS[name].at_least
    if len(outcomes) < least and end != EXHAUSTED:
        why = f"only {len(outcomes)} of {least} cases before time was up"
        outcomes.append((why, why))
    return outcomes


def run_child(name, seed, outcomes, limits, folder):
    """Add outcomes of cases in a child that works in the folder; why it ended, None if
    it died.
    """
    plan = [len(outcomes), *limits]
    command = [
        sys.executable,
        "-m",
        "benchmarks.campaign",
        "--only",
        name,
        "--seed",
        str(seed),
        "--work",
        *map(str, plan),
    ]
    threads = os.environ.get("NUMBA_NUM_THREADS", str(max(2, n_cores())))
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYTHONFAULTHANDLER": "1",
        "MPLBACKEND": "agg",
        "NUMBA_NUM_THREADS": threads,
    }
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )
        try:
            while True:
                line = next_line(
                    child.stdout, LIMIT if len(outcomes) > plan[0] else START_LIMIT
                )
                if not line:
                    outcomes.append(autopsy(child, errors, line is None))
                    return None
                outcome = json.loads(line)
                if isinstance(outcome, str):
                    return outcome
                outcomes.append(outcome)
        finally:
            end_group(child)


def next_line(pipe, limit):
    """A line, b"" at the end, None if there is none in time."""
    ready, _, _ = select.select([pipe], [], [], limit)
    return pipe.readline() if ready else None


def autopsy(child, errors, hangs):
    """(cause, message) of a child that does not answer, or that ended before its time."""
    if hangs:
        child.send_signal(signal.SIGABRT)  # Python prints where its threads are
        time.sleep(3)
    end_group(child)
    errors.seek(0)
    said = errors.read().decode(errors="replace").partition("\nExtension modules")[0]
    stacks = said[said.rfind("Fatal Python error") :].split("\n\n")
    busy = [
        stack for stack in stacks if not re.search(r"first\):\n.* in serve\n", stack)
    ]
    return "hangs" if hangs else f"died, status {child.returncode}", "\n\n".join(busy)[
        :4000
    ]


def end_group(child):
    """End the child and what it started, as long as its number cannot be another's."""
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def print_failures(name, outcomes, options):
    """The first of each cause, the most frequent causes first; how many causes there
    are.
    """
    causes = Counter(outcome[0] for outcome in outcomes if outcome)
    if causes:
        print(f"\n{name}: {causes.total()} failed, {len(causes)} causes")
    for cause, count in causes.most_common(options.show):
        case, message = next(
            (case, outcome[1])
            for case, outcome in enumerate(outcomes)
            if outcome and outcome[0] == cause
        )
        print(f"  {cause}" + (f" ({count} times)" if count > 1 else ""))
        for line in message.splitlines():
            print(f"    {line}")
        print(
            f"    python -m benchmarks.campaign --only {name} --seed {options.seed} "
            f"--case {case}"
        )
    return len(causes)


def work(kind, seed, first, soft, hard):
    """Outcomes from the first case on, and why they end, as JSON on the standard
    output.
    """
    report = os.fdopen(os.dup(1), "w", 1)
    os.dup2(2, 1)  # what the cases print
    warnings.simplefilter("ignore")
    function = case_function(kind)
    for case in itertools.count(int(first)):
        now = time.time()
        try:
            if now > hard or case >= KINDS[kind].at_least and now > soft:
                raise Done("time")
            with failing(f"case {case}"):
                function(seed, case)
            outcome = None
        except Failed as error:
            outcome = error.cause, str(error)
        except Done as done:
            outcome = str(done) or EXHAUSTED
        print(json.dumps(outcome), file=report)
        if isinstance(outcome, str):
            return


if __name__ == "__main__":
    main(options)
