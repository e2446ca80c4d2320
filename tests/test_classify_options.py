"""Settings, and the options of the application's commands: mistakes are told first."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import grassmann_classify
from grassmann_classify.__main__ import main
from grassmann_classify.bank import Bank
from grassmann_classify.baseline_rows import every_method, names_of_rows
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip
from grassmann_classify.options import (
    BESIDE_MODEL,
    COMMANDS,
    DEFAULTS,
    INSTALLED,
    OPTIONS,
    flags_of,
    parse,
    parser_of,
    split,
)
from grassmann_classify.settings import RULES, Recipe, Settings
from processes import ROOT, run_python

SLOW = {"numpy", "numba", "sklearn", "matplotlib", "scipy", "grassmann_sc"}


# ----------------------------------------------------------------------------- Settings


def own_kernel(A, B):
    return A @ B.T


@pytest.mark.parametrize(
    "field, value, rule",
    [
        ("p", 3, "p must be a list of integers, got 3"),
        ("p", np.array(3), "p must be a list of integers, got 3"),
        ("p", [], "p must hold integers, got none"),
        ("p", [2, 0], "p must be at least 1, got 0"),
        ("p", [True], r"p must be a list of integers, got \[True\]"),
        ("lam", 0.1, "lam must be a list of numbers, got 0.1"),
        ("lam", [0.1, -1], "lam must be at least 0, got -1"),
        ("lam", [np.nan], "lam must be at least 0, got nan"),
        ("lam", [np.inf], "lam must be at most 1, got inf"),
        ("neighbors", [2.0], r"neighbors must be a list of integers, got \[2\.0\]"),
        ("C", [1, 0], "C must be positive, got 0"),
        (
            "kernels",
            [own_kernel],
            r"kernels must be True or False, got \[<function own_kernel",
        ),
        ("atoms", -1, "atoms must be at least 0, got -1"),
        ("iterations", "3", "iterations must be an integer, got '3'"),
        ("seconds", -1.0, "seconds must be at least 0, got -1"),
        ("seed", 2**31, "seed must be at most 2147483647, got 2147483648"),
        (
            "methods",
            "gsc",
            "methods must be a list of the first words of rows, got 'gsc'",
        ),
        ("methods", ["gsc", " "], "methods must be the first words of a row, got ' '"),
        ("baselines", 1, "baselines must be True or False, got 1"),
    ],
)
def test_every_field_of_settings_is_checked_whenever_it_is_set(field, value, rule):
    """kernels=[own_kernel], which no comparison would use, among them."""
    with pytest.raises((TypeError, ValueError), match=f"^{rule}"):
        Settings(**{field: value})
    settings = Settings()
    with pytest.raises((TypeError, ValueError), match=f"^{rule}"):
        setattr(settings, field, value)
    assert settings == Settings()


def test_settings_take_what_they_should_as_pythons_own_and_no_other_name():
    settings = Settings(
        p=np.arange(1, 3),
        lam=(0, 0.5),
        kernels=np.False_,
        seconds=np.float32(2),
        methods=["gsc"],
    )
    assert (settings.p, settings.lam, settings.kernels) == ([1, 2], [0, 0.5], False)
    assert [type(value) for value in (*settings.p, settings.seconds)] == [
        int,
        int,
        float,
    ]
    assert Settings(p=None, seconds=None, methods=None) == Settings()
    assert Settings(seed=2**31 - 1).seed == 2**31 - 1
    with pytest.raises(
        AttributeError, match="must have the fields p, spectrum, .*, got 'gamma'"
    ):
        settings.gamma = 1
    for kernel in (False, "rbf", "a:b:c"):
        with pytest.raises(TypeError, match="kernel must be a function"):
            settings.kernel = kernel


def test_a_command_is_asked_by_the_rules_of_settings(tmp_path, capsys):
    fields = Settings.__dataclass_fields__
    assert list(RULES)[: len(fields)] == list(fields)
    options = parse(["compare", str(tmp_path)])
    assert all(
        getattr(options, name) == getattr(Settings(), name)
        for name in fields.keys() - {"kernels", "kernel", "k"}
    )
    for arguments, rule in (
        (["--seed", "2147483648"], "--seed must be at most 2147483647"),
        (["--lam", "0.1", "inf"], "--lam must be at most 1, got inf"),
        (["--methods", " , "], "--methods must hold the first words of rows"),
        (["--splits", "1"], "--splits must be a file, got 1"),
        (["--train", "inf"], "--train must be finite, got inf"),
        (["--train", "nan"], "--train must be at least 0, got nan"),
        (["--C", "nan"], "--C must be a number, got nan"),
        (
            ["--features", "raw", "--feature-options", '{"grid": 1}'],
            "--feature-options goes with descriptors but raw",
        ),
        (
            ["--feature-options", '{"grid": 1}'],
            "--feature-options goes with --features, got",
        ),
    ):
        with pytest.raises(SystemExit):
            parse(["compare", str(tmp_path), *arguments])
        assert rule in capsys.readouterr().err


# -------------------------------------------------------------------------------- --help


def test_without_arguments_an_overview_of_one_screen_names_each_command(capsys):
    for arguments in ([], ["-h"], ["--help"]):
        with pytest.raises(SystemExit, match="^0$"):
            main(arguments, "grassmann-classify")
        printed = capsys.readouterr()
        lines = printed.out.splitlines()
        assert len(lines) <= 25 and not printed.err
        for name in COMMANDS:
            assert any(f"  grassmann-classify {name} " in line for line in lines)


def files_of_examples(folder):
    """What the examples of --help name, and that they read."""
    for name in ("actions", "new_clips", "more_actions", "clips"):
        (folder / name).mkdir()
    for name in ("actions.csv", "actions.npz"):
        (folder / name).write_text("")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_an_example_that_it_takes(
    name, tmp_path, monkeypatch, capsys
):
    with pytest.raises(SystemExit, match="^0$"):
        main([name, "--help"], "grassmann-classify")
    printed = capsys.readouterr()
    assert not printed.err
    (example,) = re.findall(r"^example:\n  (.*)$", printed.out, re.MULTILINE)
    prog, *arguments = shlex.split(example)
    assert (prog, arguments[0]) == ("grassmann-classify", name)
    files_of_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert parse(arguments, prog).name == name


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_of_a_command_is_in_one_group_and_few_are_in_the_first(name):
    of_group = flags_of(name)
    first, *_ = of_group.values()
    assert [*of_group][0] == "most used" and 1 <= len(first) <= 10
    grouped = [flag for flags in of_group.values() for flag in flags]
    assert len({*grouped}) == len(grouped)
    _, _, _, given, others = COMMANDS[name]
    assert {*grouped} == {*given.split()} | others
    text = parser_of(name, everything=True).format_help()
    shown = re.findall(r"^  (--?[a-zA-Z][\w-]*)", text, re.MULTILINE)
    assert sorted(shown) == sorted([*grouped, "-h", "--help-all"])
    headings = re.findall(r"^(\w.*):$", text, re.MULTILINE)
    assert [heading for heading in headings if heading in of_group] == [*of_group]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_a_page_of_the_most_used_options_and_help_all_has_every_one(
    name, monkeypatch, capsys
):
    """Two lines an option at most; the others are named where they are not explained."""
    monkeypatch.setenv("COLUMNS", "80")
    first, *others = flags_of(name).values()
    pages = []
    for word in ("--help", "--help-all"):
        with pytest.raises(SystemExit, match="^0$"):
            main([name, word], "grassmann-classify")
        pages.append(capsys.readouterr().out)
    page, everything = pages
    assert page.index("example:") < 80 and len(page.splitlines()) <= 60
    for flag in [flag for flags in (first, *others) for flag in flags]:
        assert re.search(rf"^  {flag}\b", everything, re.MULTILINE)
        explained = re.search(rf"^  {flag}\b", page, re.MULTILINE)
        assert bool(explained) == (flag in first) and f" {flag}" in page
    for words in re.split(r"\n(?=  -|\n)", everything):
        lines = words.strip("\n").splitlines()
        named = re.match("  -.{21}", words) and len(lines[0].rstrip()) < 80
        alone = named and not re.search(r"\S {2,}\S", lines[0])
        assert not named or len(lines) <= 2 + alone, words


@pytest.mark.parametrize(
    "options, p",
    [("", 24), ("--p 30", 30), ("--p 3 --spectrum 1", 24), ("--p 30 --spectrum 1", 30)],
)
def test_as_many_directions_are_read_as_any_candidate_has(options, p):
    recipe, *_ = split(parse(["compare", ".", *options.split()], "grassmann-classify"))
    assert recipe.p == p


def test_help_of_cluster_tells_of_no_choice():
    """Nothing chooses there: each option takes one value, and names its default."""
    text = parser_of("cluster", everything=True).format_help()
    assert not re.search("chosen|choose|splits|folds|several to", text)
    for flag in ("--p P", "--stack M", "--features NAME"):
        assert re.search(rf"^  {flag} +\w", text, re.MULTILINE)


def test_each_option_is_one_of_some_command_and_each_says_what_it_is_for():
    flags = {flag for name in COMMANDS for of in flags_of(name).values() for flag in of}
    assert {*OPTIONS} == flags
    assert all(keywords["help"][0] for keywords in OPTIONS.values())


def test_help_and_mistakes_wait_for_no_import():
    """In one interpreter, for each command: --help, and each way to be wrong."""
    code = f"""
import contextlib, io, sys
import grassmann_classify
from grassmann_classify.__main__ import main
asked = [[], ["--help"], ["fly"], ["--fly"]]
for name in {[*COMMANDS]}:
    asked += [[name, "--help"], [name], [name, "nowhere"], [name, ".", "--fly"]]
    asked += [[name, ".", "--model", "nowhere.npz", "--save", "x"]]
    asked += [[name, ".", "--data", ".", "-k", "2", "--p", "0"]]
for arguments in asked:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(arguments, "grassmann-classify")
        except SystemExit as end:
            code = end.code
    assert code == (0 if arguments[-1:] in ([], ["--help"]) else 2), arguments
    assert not {SLOW} & set(sys.modules), arguments
    assert said.getvalue()
"""
    run_python(code)


@pytest.mark.parametrize("arguments", [[], ["compare", "--help"], ["compare", "--fly"]])
def test_python_m_answers_as_the_command_does(arguments):
    process = subprocess.run(
        [sys.executable, "-m", "grassmann_classify", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    text = process.stdout + process.stderr
    assert "python -m grassmann_classify compare" in text and INSTALLED not in text
    assert process.returncode == (2 if "--fly" in arguments else 0)


# ------------------------------------------------------------------- mistakes in a line


MISTAKES = [
    ("", "fly", "the first word must be a command, compare, predict, "),
    ("", "--data DIR", "the first word must be a command"),
    ("compare", "compare", "the following arguments are required: DIR"),
    ("compare", "compare DIR --fly", "unrecognized arguments: --fly"),
    ("compare", "compare DIR --predict DIR", "unrecognized arguments: --predict DIR"),
    (
        "",
        "comapre DIR",
        "the first word must be a command, compare, predict, add, check, cluster, got "
        "'comapre' (did you mean compare?)",
    ),
    (
        "compare",
        "compare DIR --method gsc",
        "unrecognized arguments: --method gsc (did you mean --methods?)",
    ),
    (
        "compare",
        "compare DIR --neighbours=5",
        "unrecognized arguments: --neighbours=5 (did you mean --neighbors?)",
    ),
    (
        "compare",
        "compare DIR --no-kernel",
        "unrecognized arguments: --no-kernel (did you mean --no-kernels?)",
    ),
    ("cluster", "cluster DIR -k 2 --recipe x", "unrecognized arguments: --recipe x;"),
    (
        "predict",
        "predict DIR new",
        "unrecognized arguments: new (--data names the labelled clips)",
    ),
    ("compare", "compare DIR new", "unrecognized arguments: new;"),
    ("compare", "compare DIR --p x", "argument --p: invalid int value: 'x'"),
    ("compare", "compare DIR --format gif", "argument --format: invalid choice: 'gif'"),
    (
        "compare",
        "compare nowhere",
        "DIR must be a folder, an .npz file or a recording (.",
    ),
    ("compare", "compare DIR --train 0", "--train must lie between 0 and 1, or be a"),
    ("compare", "compare DIR --labels nowhere.csv", "--labels must be a file, got no"),
    ("compare", "compare DIR --labels DIR", "--labels must be a file, got "),
    ("compare", "compare DIR --splits nowhere.csv", "--splits must be a file, got now"),
    ("compare", "compare FILE --labels FILE", "--labels goes with a folder of clips"),
    (
        "compare",
        "compare DIR --labels FILE --group-by x",
        "--labels and --group-by excl",
    ),
    (
        "compare",
        "compare DIR --strict --skip",
        "--strict and --skip exclude each other",
    ),
    ("compare", "compare DIR --rate 5 --evenly 3", "--rate and --evenly exclude each"),
    ("compare", "compare DIR --group-by (", "--group-by must be a regular expression"),
    ("predict", "predict DIR", "--data is needed, or --model, and not both"),
    ("predict", "predict DIR --data DIR --model FILE", "--data is needed, or --model"),
    ("predict", "predict --data DIR", "NEW is needed, or --save"),
    (
        "predict",
        "predict --data DIR --save x.npz --json",
        "--json and --smooth go with NEW",
    ),
    (
        "predict",
        "predict --data DIR --save x.npz --smooth 3",
        "--json and --smooth go with NEW",
    ),
    (
        "compare",
        "compare DIR --label-column y --window 9 --resample 90",
        "--resample must not go with --window and --label-column",
    ),
    (
        "compare",
        "compare DIR --label-column y --window 9 --evenly 90",
        "--evenly must not go with --window and --label-column",
    ),
    (
        "predict",
        "predict nowhere --data DIR",
        "NEW must be a folder, a clip or an .npz file, got n",
    ),
    (
        "predict",
        "predict DIR --data nowhere",
        "--data must be a folder, an .npz file or",
    ),
    ("predict", "predict DIR --model nowhere.npz", "--model must be a file, got nowh"),
    ("predict", "predict DIR --model FILE --save x.npz", "--save and --model exclude"),
    (
        "predict",
        "predict DIR --data DIR --coverage 1.5",
        "--coverage must be at most 1",
    ),
    ("add", "add DIR --model FILE", "the following arguments are required: --save"),
    ("add", "add DIR --save x.npz", "the following arguments are required: --model"),
    ("add", "add NONE --model FILE --save x", "MORE must be a folder, an .npz file or"),
    ("add", "add DIR --model FILE --save x --p 3", "unrecognized arguments: --p 3"),
    ("check", "check DIR --save x.npz", "unrecognized arguments: --save x.npz"),
    ("cluster", "cluster DIR", "the following arguments are required: -k"),
    ("cluster", "cluster DIR -k 0", "-k must be at least 1, got 0"),
    ("compare", "compare DIR --size 0 8", "--size must be at least 1, got 0"),
    ("cluster", "cluster DIR -k 2 --labels FILE", "unrecognized arguments: --labels"),
    ("cluster", "cluster DIR -k 2 --p 2 3", "unrecognized arguments: 3"),
]


@pytest.mark.parametrize("name, words, rule", MISTAKES)
def test_a_wrong_argument_is_told_in_one_line_that_names_help(
    name, words, rule, tmp_path, monkeypatch, capsys
):
    (tmp_path / "FILE").write_text("")
    (tmp_path / "DIR").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="^2$"):
        main(words.split(), "grassmann-classify")
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    prog = f"grassmann-classify {name}".strip()
    assert line.startswith(f"{prog}: error: {rule}")
    assert line.endswith(f"; see {prog} --help") and not printed.out
    assert {path.name for path in tmp_path.iterdir()} == {"FILE", "DIR"}


@pytest.mark.parametrize("option", ["", "--labels ", "--fly=", "--p="])
def test_what_is_typed_neither_commands_the_terminal_nor_takes_two_lines(
    option, tmp_path, capsys
):
    wrong = f"{option}no\x1b[31mwhere\n\rhere"
    first = [str(tmp_path)] if option else []
    with pytest.raises(SystemExit, match="^2$"):
        main(["compare", *first, *wrong.split(" ", 1)], "grassmann-classify")
    printed = capsys.readouterr().err
    assert printed.endswith("\n") and printed.rstrip("\n").isprintable()


# -------------------------------------------------------- mistakes before a clip is read


def clips(folder, labels="ab", per_class=6):
    """12 clips of 5 frames of 4 x 6 pixels."""
    rng = np.random.default_rng(0)
    for k, label in enumerate(labels):
        (folder / label).mkdir(parents=True)
        for i in range(per_class):
            frames = rng.integers(0, 60, (5, 4, 6)) + 90 * (np.arange(6) // 3 == k)
            np.save(folder / label / f"{i}.npy", frames.astype(np.uint8))
    return folder


@pytest.mark.parametrize(
    "words, why",
    [
        ("compare data --methods gsc,fly", "--methods must hold the first words of ro"),
        ("compare data --methods vote", "--methods must hold the first words of rows,"),
        (
            "predict --data data --save m --methods vote",
            "--methods must hold the first",
        ),
        ("compare data --methods kgsc --no-kernels", "--methods must hold the first w"),
        ("predict new --data data --methods fly", "--methods must hold the first word"),
        ("compare data --splits strange.csv", "strange.csv: must name clips that are "),
        (
            "compare data --splits empty.csv",
            "empty.csv: the first line must be clip,NA",
        ),
        ("compare data --labels empty.csv", "empty.csv: the first line must name the "),
        ("compare data --labels bytes.csv", "bytes.csv: must be a CSV file in UTF-8, "),
        ("compare data --labels strange.csv", "strange.csv: the first line must name "),
        (
            "check data --labels short.csv",
            "short.csv: line 3 must have 2 columns, got ",
        ),
        (
            "predict new --data data --labels nobody.csv",
            "nobody.csv: must name clips t",
        ),
        ("check data --labels one.csv", "one.csv: methods are chosen on sets of at le"),
        ("predict new --data data --save no/m.npz", "--save must be a path that a fil"),
        ("predict --data data --save data", "--save must be the path of a file, got d"),
        (
            "predict --data data --save data/a/0.npy",
            "--save must be a new file, got data/a/0",
        ),
        (
            "predict --data data --save one.csv",
            "--save must be a new file, got one.csv,",
        ),
    ],
)
def test_what_cannot_be_is_told_before_a_clip_is_read(
    words, why, tmp_path, monkeypatch, capsys
):
    clips(tmp_path / "data")
    clips(tmp_path / "new")
    (tmp_path / "strange.csv").write_text("clip,s\na/0.npy,train\na/9.npy,test\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bytes.csv").write_bytes(b"clip,label\n\xff,a\n")
    (tmp_path / "short.csv").write_text("clip,label\na/0.npy,a\nb/0.npy\n")
    (tmp_path / "nobody.csv").write_text("clip,label\na/0.npy,a\nb/9.npy,b\n")
    (tmp_path / "one.csv").write_text("clip,label\na/0.npy,a\nb/0.npy,a\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(
        "grassmann_sc.frames.read_frames",
        lambda *_, **how: pytest.fail("a clip was read"),
    )
    before = contents(tmp_path)
    with pytest.raises(SystemExit, match=f"^grassmann-classify: {re.escape(why)}"):
        main(words.split(), "grassmann-classify")
    printed = capsys.readouterr()
    assert (
        not printed.out
        and "frames of" not in printed.err
        and "reading" not in printed.err
    )
    assert contents(tmp_path) == before


def contents(folder):
    """{name: bytes} of the files below a folder, but for those of this program."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {"out", "__pycache__"} & {*path.parts}
    }


# ------------------------------------------------------------------- what a model keeps


OTHERS = {  # values that are none of the defaults
    "--labels": "FILE",
    "--size": "4 6",
    "--features": "hog",
    "--key": "x",
    "--axes": "channels,time",
    "--columns": "x",
    "--label-column": "x",
    "--group-column": "x",
    "--every": "2",
    "--evenly": "3",
    "--resample": "3",
    "--window": "3",
    "--step": "3",
    "--rate": "50",
    "--clock": "x",
    "--group-by": "x",
    "--recipe": "plain",
    "--feature-options": '{"grid":1}',
    "--p": "2",
    "--stack": "2",
    "--arma": "2",
    "--seconds": "1",
    "--seed": "1",
    "--methods": "gsc",
    "--lam": "0.1",
    "--neighbors": "3",
    "--C": "1",
    "--atoms": "3",
    "--spectrum": "0.5",
    "--iterations": "1",
}
ASKED = [
    [flag, *OTHERS.get(flag, "").split()]
    for flags in flags_of("predict").values()
    for flag in flags
    if "_".join(flag.lstrip("-").split("-"))
    not in {*BESIDE_MODEL, "data", "no_pictures"}
]


@pytest.mark.parametrize("words", ASKED, ids=lambda words: words[0])
def test_what_a_model_keeps_is_refused_beside_it(words, tmp_path, monkeypatch, capsys):
    (tmp_path / "FILE").write_text("")
    (tmp_path / "DIR").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="^2$"):
        parse(["predict", "DIR", "--model", "FILE", *words])
    flag = words[0].replace("--no-", "--") if words[0] != "--no-pictures" else words[0]
    assert f"{flag} and --model exclude each other: a model" in capsys.readouterr().err


def test_what_goes_with_a_model_is_taken(tmp_path, monkeypatch):
    (tmp_path / "FILE").write_text("")
    (tmp_path / "DIR").mkdir()
    monkeypatch.chdir(tmp_path)
    taken = "--out o --no-pictures --format svg --dpi 40 --strict --coverage 0.8"
    taken += " --smooth 3 --json --label-column x"
    parse(["predict", "DIR", "--model", "FILE", *taken.split()])
    assert BESIDE_MODEL <= DEFAULTS.keys()
    added = ["--skip", "--out", "o"]
    parse(["add", "DIR", "--model", "FILE", "--save", "x", *added])


# ---------------------------------------------------------------------- names of rows


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("atoms", [0, 3])
def test_the_names_of_rows_are_those_that_there_are(kernels, atoms):
    """On clips of which all rows can be made: images of 8 x 8 pixels, as videos."""
    pytest.importorskip("skimage", reason="DL-Pegasos needs the extra 'image'")
    rng = np.random.default_rng(0)
    made = [
        Clip(f"{i}", i % 2, None, [rng.integers(0, 256, (9, 8, 8), np.uint8)])
        for i in range(8)
    ]
    collection = build_all(made, Recipe(3))
    videos = [rows.reshape(-1, 8, 8) for rows in collection.sets]
    inputs = Bank(collection, videos=videos)
    settings = Settings(kernels=kernels, atoms=atoms, baselines=True)
    names = [row.name for row in every_method(inputs, 4, settings)]
    assert len({*names}) == len(names)
    assert sorted(names_of_rows(settings)) == sorted(names)


def test_rows_in_a_kernels_space_are_known_where_nothing_says_that_they_are_left_out(
    tmp_path,
):
    """None, the default of the commands: as memory and time allow."""
    options = parse(["compare", str(tmp_path), "--methods", "kgsc"])
    assert options.kernels is None
    assert names_of_rows(options) == names_of_rows(Settings(kernels=True))


def test_a_program_that_calls_main_keeps_its_hook_and_handlers(capsys):
    """They are set where the process is the command's own."""

    def ours():
        handlers = [
            signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)
        ]
        return [sys.excepthook, *handlers]

    before = ours()
    with pytest.raises(SystemExit):
        main(["compare", "nowhere"])
    assert ours() == before


def test_no_module_takes_the_name_of_a_function_of_the_package():
    """An import of such a module would replace the function."""
    files = Path(grassmann_classify.__file__).parent.glob("*.py")
    assert not {file.stem for file in files} & {*grassmann_classify.__all__}
