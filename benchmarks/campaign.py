"""A hostile campaign on the whole toolkit: python -m benchmarks.campaign, or make campaign

Kinds of cases, drawn from the seed: at least so many of each as KINDS says, more if its share of
the time allows; a function (seed, case) for each in benchmarks/campaign_*.py raises what went
wrong. A kind runs in a process of its own, so that a crash or a hang is one failed case and the
next one follows. Prints a table, then the first failures of each kind with what reproduces them;
exit status 1 if a case failed or a kind is short of cases.
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
from types import SimpleNamespace

from examples.options import of_these, parsed

Kind = namedtuple("Kind", "room at_least share")  # share: of SECONDS
KINDS = {
    "inputs": Kind("inputs", 1800, 150),
    "coding": Kind("numbers", 816, 40),
    "oracles": Kind("oracles", 420, 40),
    "layouts": Kind("numbers", 400, 50),
    "damaged": Kind("files", 667, 60),
    "kills": Kind("numbers", 40, 50),
    "interrupts": Kind("numbers", 2159, 70),
    "forks": Kind("numbers", 655, 60),
    "folders": Kind("folders", 20, 50),
    "disks": Kind("folders", 20, 40),
    "threads": Kind("numbers", 100, 20),
}
SECONDS = sum(kind.share for kind in KINDS.values())

options = parsed(__name__, of_these, "benchmarks.campaign", {
    "--seed": dict(type=int, default=0),
    "--seconds": dict(type=float, default=SECONDS, help="for all kinds"),
    "--only": dict(choices=KINDS, metavar="KIND",
                   help=f"{', '.join(KINDS)}: one kind, in its share of the seconds"),
    "--case": dict(type=int, help="with --only: one case, and its traceback"),
    "--show": dict(type=int, default=5, help="failures to print of each kind"),
    "--work": dict(type=float, nargs=3, help="for a child of the campaign alone")})
if options and options.case is not None and options.only is None:
    sys.exit("--case needs --only")

from benchmarks.campaign_calls import Done, Failed, failing
from benchmarks.common import ROOT, header, n_cores

START_LIMIT = 300  # seconds until a child's first case is done: Numba may have to compile
LIMIT = 60  # seconds of any other case

Failure = namedtuple("Failure", "case cause message")


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
    return getattr(importlib.import_module(f"benchmarks.campaign_{KINDS[kind].room}"), kind)


def campaign(options):
    """Run the kinds, print what came out; the exit status."""
    header(f"campaign, seed {options.seed}")
    left = {options.only: KINDS[options.only]} if options.only else dict(KINDS)
    unit = options.seconds / SECONDS
    end = time.time() + sum(kind.share for kind in left.values()) * unit
    rows = []
    shared = tempfile.TemporaryDirectory(prefix="campaign_")
    os.environ["CALLS"] = os.path.join(shared.name, "calls.pickle")
    print(f"{'kind':12}{'tried':>9}{'held':>9}{'failed':>9}{'seconds':>9}")
    while left:
        shares = sum(kind.share for kind in left.values())
        name = next(iter(left))
        seconds = max(end - time.time(), 0) * left.pop(name).share / shares
        row = run_kind(name, options.seed, seconds, KINDS[name].share * unit)
        rows.append(row)
        failed = len(row.failures)
        print(f"{name:12}{row.tried:9}{max(row.tried - failed, 0):9}{failed:9}{row.seconds:9.0f}",
              flush=True)
    for row in rows:
        print_failures(row, options)
    return int(any(row.failures for row in rows))


def run_kind(name, seed, seconds, share):
    """What became of a kind: cases until its seconds are over and its least number is reached, for
    which it takes up to three times its share, beside other work. exhausted: there are no more
    cases than were tried."""
    row = SimpleNamespace(kind=name, tried=0, failures=[], seconds=0.0, exhausted=False)
    start = time.time()
    hard = start + 3 * share
    first = 0
    while first is not None and time.time() < hard:
        with tempfile.TemporaryDirectory(prefix="campaign_") as folder:
            first = run_child(row, seed, (first, start + seconds, hard), folder)
    row.seconds = time.time() - start
    least = KINDS[name].at_least
    if row.tried < least and not row.exhausted:
        why = f"only {row.tried} of {least} cases before time was up"
        row.failures.append(Failure(row.tried, why, why))
    return row


def add_case(row, case, failure):
    """One more case, and how it failed: (cause, message), or None if it held."""
    row.tried += 1
    if failure is not None:
        row.failures.append(Failure(case, *failure))


def run_child(row, seed, plan, folder):
    """Cases in a child that works in the folder; the case to go on from in another, or None."""
    case = plan[0]
    command = [sys.executable, "-m", "benchmarks.campaign", "--only", row.kind, "--seed", str(seed),
               "--work", *map(repr, map(float, plan))]
    threads = os.environ.get("NUMBA_NUM_THREADS", str(max(2, n_cores())))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1",
                                "MPLBACKEND": "agg", "NUMBA_NUM_THREADS": threads}
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=folder,
                                 env=environment, bufsize=0, start_new_session=True)
        try:
            while True:
                limit = START_LIMIT if case == plan[0] else LIMIT
                line = next_line(child.stdout, limit)
                if not line:
                    add_case(row, case, autopsy(child, errors, line is None))
                    return case + 1
                told = json.loads(line)
                if "end" in told:
                    row.exhausted = told["end"] == "exhausted"
                    return None
                add_case(row, case, told["failure"])
                case += 1
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
    stacks = said[said.rfind("Fatal Python error"):].split("\n\n")
    busy = [stack for stack in stacks if not re.search(r"first\):\n.* in serve\n", stack)]
    return "hangs" if hangs else f"died, status {child.returncode}", "\n\n".join(busy)[:4000]


def end_group(child):
    """End the child and what it started, as long as its number cannot be another's."""
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def print_failures(row, options):
    """The first of each cause, the most frequent causes first."""
    causes = Counter(failure.cause for failure in row.failures)
    if causes:
        print(f"\n{row.kind}: {len(row.failures)} failed, {len(causes)} causes")
    for cause, count in causes.most_common(options.show):
        first = next(failure for failure in row.failures if failure.cause == cause)
        print(f"  {cause}" + (f" ({count} times)" if count > 1 else ""))
        for line in first.message.splitlines():
            print(f"    {line}")
        print(f"    python -m benchmarks.campaign --only {row.kind} --seed {options.seed} "
              f"--case {first.case}")


def work(kind, seed, first, soft, hard):
    """Cases from the first on; a line of JSON for each on what was the standard output."""
    report = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)  # what the cases print
    warnings.simplefilter("ignore")
    function = case_function(kind)
    for case in itertools.count(int(first)):
        now = time.time()
        if now > hard or case >= KINDS[kind].at_least and now > soft:
            return tell(report, end="time")
        try:
            with failing(f"case {case}"):
                function(seed, case)
        except Done:
            return tell(report, end="exhausted")
        except Failed as error:
            tell(report, failure=(error.cause, str(error)))
        else:
            tell(report, failure=None)


def tell(report, **content):
    report.write(json.dumps(content).encode() + b"\n")


if __name__ == "__main__":
    main(options)
