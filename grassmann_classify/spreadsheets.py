"""CSV files, as spreadsheets take them: no cell is run as a formula."""

import csv
import io
import re

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with which cells that are run begin


def read_rows(path):
    """(The first row of a CSV file, [(line, row), ...] of the others).

    Where the first line has no comma, ; or tabs separate columns, as Excel writes them in
    some countries.
    """
    try:
        # Excel writes a byte order mark
        with open(path, newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            between = next((mark for mark in ",;\t" if mark in first), ",")
            reader = csv.reader(file, delimiter=between)
            rows = [(reader.line_num, [*map(_as_meant, row)]) for row in reader if row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: must be a CSV file in UTF-8, got {error}") from None
    (_, header), *rows = rows or [(1, [])]
    return header, rows


def write_rows(out, name, header, rows):
    """Write a CSV file into a folder.Results; gives its path."""
    lines = [_line([_as_text(value) for value in row]) for row in [header, *rows]]
    # names of files may hold bytes that are no text
    content = "".join(lines).encode("utf-8", "replace")
    return out.write(name, lambda file: file.write(content))


def _line(row):
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(row)  # else \r has no quotes
    return text.getvalue().removesuffix("\r\n") + "\n"


def _as_text(value):
    """A cell; before a text that a spreadsheet would run as a formula stands a '."""
    if not isinstance(value, str):
        return value
    value = value.replace("\0", r"\x00")  # which csv of Python 3.10 refuses
    return f"'{value}" if FORMULA.match(value) and not _is_number(value) else value


def _as_meant(cell):
    """What _as_text was given."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
