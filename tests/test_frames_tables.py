"""Tables of sensors, a row a time step: what is read of them, and what is refused."""

import numpy as np
import pytest

from grassmann_sc import frames

WALK = "time;ax;ay\n0;1,5;-2\n1;2,5;-3\n"


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text, names, numbers",
    [
        ("1,2\n3,4\n", ["1", "2"], [[1, 2], [3, 4]]),
        ("ax,ay\r\n1,2\r\n3,4\r\n", ["ax", "ay"], [[1, 2], [3, 4]]),
        ("\ufeffax\tay\n1\t2\n\n3\t4", ["ax", "ay"], [[1, 2], [3, 4]]),
        (WALK, ["ax", "ay"], [[1.5, -2], [2.5, -3]]),
        ("Timestamp (ms),a\n0,1\n", ["a"], [[1]]),
        ("times,a\n0,1\n", ["times", "a"], [[0, 1]]),
        ('"a, b",c\n1,2\n', ["a, b", "c"], [[1, 2]]),
        ('"a;b",c\n1,2\n', ["a;b", "c"], [[1, 2]]),
        ("# x,y\n1e3,-.5\n", ["x", "y"], [[1000, -0.5]]),  # as np.savetxt writes it
        (",0,1\n0,7,8\n1,9,9\n", ["0", "1"], [[7, 8], [9, 9]]),  # as pandas writes it
        ("0,1\n7,8\n", ["0", "1"], [[7, 8]]),
        ("0,1\n1,1\n0,0\n", ["1", "2"], [[0, 1], [1, 1], [0, 0]]),  # two switches
        ("step,0,1\n1,7,8\n\n2,9,9\n", *(["step", "0", "1"], [[1, 7, 8], [2, 9, 9]])),
        ("walk,0,1\nsit,7,8\n", ["2", "3"], [[0, 1], [7, 8]]),  # no header
        # cells of a row that miss a number, or tell of an event
        ("0.5,1.5,#N/A\n1.5,2.5,0.1\n", ["1", "2"], [[0.5, 1.5], [1.5, 2.5]]),
        ("0.1,0.2,wave\n0.3,0.4,NA\n", ["1", "2"], [[0.1, 0.2], [0.3, 0.4]]),
        ("1,2,wave\n3,4,\n", ["1", "2"], [[1, 2], [3, 4]]),
        ("stamp,ax,what\n09:00,1,sit\n", ["ax"], [[1]]),
        ("walk,1,2\nwalk,3,4\n", ["2", "3"], [[1, 2], [3, 4]]),  # no header
        ("Na,K,Cl\n1,2,3\n", ["Na", "K", "Cl"], [[1, 2, 3]]),
        ("1,2,\n3,4,\n", ["1", "2"], [[1, 2], [3, 4]]),
    ],
)
def test_columns_of_numbers_are_read(tmp_path, text, names, numbers):
    path = written(tmp_path / "walk.csv", text)
    table = frames.read_table(path)
    assert table.names == names
    np.testing.assert_array_equal(table.numbers, numbers)
    np.testing.assert_array_equal(frames.read_frames(path), numbers)
    assert frames.read_shape(path) == np.shape(numbers)


@pytest.mark.parametrize(
    "columns, numbers",
    [
        (["ay"], [[-2], [-3]]),
        (["3", "ax"], [[-2, 1.5], [-3, 2.5]]),
        (["2-3"], [[1.5, -2], [2.5, -3]]),
    ],
)
def test_columns_are_chosen_by_names_and_numbers(tmp_path, columns, numbers):
    path = written(tmp_path / "walk.csv", WALK)
    np.testing.assert_array_equal(frames.read_frames(path, columns=columns), numbers)


def test_no_column_is_chosen_twice_by_its_name_and_a_number(tmp_path):
    """As where a table has names, and those that were read before it had none."""
    path = written(tmp_path / "walk.csv", "0,1\n7,8\n")
    with pytest.raises(ValueError, match="walk.csv: columns must differ from each"):
        frames.read_table(path, columns=["1", "2"])
    assert frames.read_table(path, columns=["1", "1"]).numbers.tolist() == [[8, 8]]


def test_frames_of_a_table_are_picked_as_others_are(tmp_path):
    path = written(tmp_path / "walk.tsv", "\n".join(f"{i}\t{-i}" for i in range(9)))
    picked = frames.read_frames(path, every=2, at_most=3)
    np.testing.assert_array_equal(picked, [[0, 0], [2, -2], [4, -4]])
    assert frames.read_shape(path, every=2, at_most=3) == (3, 2)
    assert frames.read_frames(path, frame_axis=-1).shape == (2, 9)
    assert frames.read_shape(path, frame_axis=-1) == (2, 9)
    with pytest.raises(ValueError, match="must be images to be resized"):
        frames.read_frames(path, size=(3, 3))


def test_texts_and_gaps_are_read_where_they_are_asked_for(tmp_path):
    path = written(tmp_path / "day.csv", "who,ax,what\n7, ,sit\n7,2,\n8,nan,walk\n")
    table = frames.read_table(path, texts=["what", "who"], gaps=True)
    assert table.names == ["ax"]
    np.testing.assert_array_equal(table.numbers, [[np.nan], [2], [np.nan]])
    assert [column.tolist() for column in table.texts] == [
        ["sit", "", "walk"],
        ["7", "7", "8"],
    ]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "holds no row"),
        ("ax,ay\n", "holds no row below its first line"),
        (
            "ax,ay\nleft,right\n",
            "must hold a column of numbers, got the columns ax, ay, which begin with 'left'",
        ),
        ("ax,ay\n1,2\n3\n", "line 3 must have as many columns as the first, 2, got 1"),
        ("ax,ay\n1,2\n\n3,x\n", "line 4: column ay must hold a finite number, got 'x'"),
        ("ax,ay\n1,2\n,4\n", "line 3: column ax must hold a finite number, got ''"),
        ("1,2\n1,inf\n", "line 2: column 2 must hold a finite number, got 'inf'"),
        ('a,b\n1,2\n1,"1,234"\n', "line 3: column b must hold .*got '1,234'"),
        ("a b\n1 2\n", "must hold a column of numbers, got the columns a b.* '1 2'"),
        (
            'time,ax\n1,"1,5"\n',
            "got the columns time, ax, which begin with '1,5' below",
        ),
        ("time\n1\n2\n", "must hold a column of numbers, got the columns time$"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(tmp_path, text, message):
    path = written(tmp_path / "walk.csv", text)
    with pytest.raises(ValueError, match=f"walk.csv: .*{message}"):
        frames.read_frames(path)
    with pytest.raises(ValueError, match=f"walk.csv: .*{message}"):
        frames.read_shape(path)


@pytest.mark.parametrize("column", ["az", "0", "4", "3-2", "2-9", "1-2-3", "x"])
def test_a_column_that_is_not_there_is_named(tmp_path, column):
    path = written(tmp_path / "walk.csv", WALK.replace("ay", "x").replace("ax", "x"))
    with pytest.raises(
        ValueError, match=f"one column {column}, got the columns time, x"
    ):
        frames.read_frames(path, columns=[column])


def test_another_encoding_is_refused(tmp_path):
    path = written(tmp_path / "walk.csv", "ax,ay\n1,2\n", "utf-16")
    with pytest.raises(ValueError, match="walk.csv: must be a table in UTF-8"):
        frames.read_frames(path)


def test_tables_are_clips_where_nothing_else_is(tmp_path):
    """Beside images they are notes."""
    path = written(tmp_path / "a.csv", "1,2\n")
    assert frames.contents(tmp_path).clips == [path]
    np.save(tmp_path / "b.npy", np.zeros((3, 2)))
    assert frames.contents(tmp_path).clips == [tmp_path / "b.npy"]


def test_a_column_is_not_a_number_and_a_label_at_once(tmp_path):
    path = written(tmp_path / "walk.csv", "x,y,lab\n1,2,3\n")
    with pytest.raises(ValueError, match="column lab must not be a number and a text"):
        frames.read_table(path, ["1-3"], ["lab"])


def test_a_blank_line_is_none_and_a_line_of_missing_numbers_is_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n \na,b\n1,2\n ,\n3,4\n  \n")
    table = frames.read_table(path, gaps=True)
    assert np.array_equal(table.numbers, [[1, 2], [np.nan] * 2, [3, 4]], equal_nan=True)
    assert table.names == ["a", "b"]


@pytest.mark.parametrize(
    "columns, error, message",
    [
        ([""], ValueError, "a.csv: must have one column , got the columns a, b"),
        ("ab", TypeError, "columns must be a sequence of names or numbers, got str"),
        (3, TypeError, "columns must be a sequence of names or numbers, got int"),
    ],
)
def test_columns_that_no_table_has(columns, error, message, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(error, match=message):
        frames.read_frames(path, columns=columns)
