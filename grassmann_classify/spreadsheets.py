"""CSV files, as spreadsheets take them: no cell is run as a formula."""

import csv
import io

from grassmann_classify.splits import FORMULA


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


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
