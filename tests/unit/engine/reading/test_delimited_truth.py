"""Text files with known contents: every cell comes back, or the file says that it had two readings.

The oracle is a plain list of rows and a writer of its own (`text_files`), which shares no code with the engine.
"""

import random
from dataclasses import replace

import pytest

from runner.engine.reading import open_book
from tests.support.effort import examples
from tests.support.text_files import LANGUAGES, Writing, table, words_of, written

NAMES = "Müller Señor François Åsa Søren João Zoë Björn García Løvland Jürgen Peña Gonçalves Hélène Groß Núñez Ågren".split()  # noqa: SIM905
AWKWARD = ["", "delimiters", "quotes", "lines", "apostrophes", "paths", "inches", "blanks"]


def read(tmp_path, content):
    """The rows of a file, and the codes of what it says about its readings."""
    path = tmp_path / "file.csv"
    path.write_bytes(content)
    with open_book(path, name="file.csv") as book:
        rows = [values for _, values in book.sheets[0].rows()]
        said = {choice.kind for choice in book.choices if not choice.sure}
        said |= {remark.code for remark in book.sheets[0].remarks()}
    return rows, said


def expected(rows):
    """The same rows as a sheet has them: blanks are nothing, and nothing stands at a row's end."""
    trimmed = []
    for row in rows:
        values = [cell or None for cell in row]
        while values and values[-1] is None:
            values.pop()
        if values:
            trimmed.append(values)
    return trimmed


def a_writing(r):
    delimiter = r.choice(",;\t|#")
    return Writing(
        delimiter=delimiter,
        quote=r.choice('"""\''),
        quoting=r.choice(["needed", "texts", "all"]),
        blank="" if delimiter == "\t" else r.choice(["", "", "", " ", "  "]),
        end=r.choice(["\n", "\r\n", "\r"]),
        last_end=r.random() < 0.8,
        trailing=r.random() < 0.1,
        encoding=r.choice(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]),
    )


@pytest.mark.parametrize("awkward", AWKWARD)
@pytest.mark.parametrize("rows", [2, 3, 6, 30, 120])
def test_any_table_written_in_any_way_comes_back_with_nothing_reported(tmp_path, awkward, rows):
    for seed in range(examples(6)):
        how = a_writing(random.Random(f"{seed}{awkward}{rows}"))
        made = table(f"{seed}{awkward}", rows, awkward=awkward)
        got, said = read(tmp_path, written(made, how))
        if how.blank:  # the blank behind a delimiter is not part of an unquoted value
            got = [[value and value.lstrip(" ") for value in row] for row in got]
            made = [[cell.lstrip(" ") for cell in row] for row in made]
        assert got == expected(made), (seed, how)
        assert not said, (seed, how)


@pytest.mark.slow
@pytest.mark.parametrize("quoting", ["needed", "all"])
@pytest.mark.parametrize("awkward", ["delimiters", "quotes", "lines"])
def test_five_thousand_rows_come_back(tmp_path, awkward, quoting):
    made = table("large", 5_000, awkward=awkward)
    assert read(tmp_path, written(made, Writing(delimiter=";", quoting=quoting, end="\r\n"))) == (expected(made), set())


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("awkward", ["", "delimiters", "quotes", "lines"])
def test_narrow_tables_come_back(tmp_path, columns, awkward):
    for seed in range(5):
        for rows in (1, 2, 5, 12, 60):
            made = [[*row[: columns - 1], row[5]] for row in table(seed, rows, awkward=awkward)]
            for quoting in ("needed", "all"):
                assert read(tmp_path, written(made, Writing(quoting=quoting)))[0] == expected(made), (seed, rows)


@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_quotes_escaped_by_backslashes_come_back(tmp_path, delimiter):
    for seed in range(5):
        for awkward in ("quotes", "inches"):
            made = table(seed, 20, awkward=awkward)
            how = Writing(delimiter=delimiter, quoting="texts", backslashes=True)
            got, said = read(tmp_path, written(made, how))
            assert got == expected(made) or said, (seed, awkward)


def test_line_ends_of_every_kind_in_one_file(tmp_path):
    made = table("ends", 200)
    r = random.Random(1)
    content = "".join(",".join(row) + r.choice(["\n", "\r\n", "\r"]) for row in made)
    assert read(tmp_path, content.encode()) == (expected(made), set())


def test_the_mark_of_a_file_that_was_pasted_in_is_no_part_of_a_value(tmp_path):
    made = table("marks", 40)
    lines = [",".join(f'"{cell}"' for cell in row) + "\n" for row in made]
    content = "\ufeff" + "".join(lines[:20]) + "\ufeff" + "".join(lines[20:])
    assert read(tmp_path, content.encode()) == (expected(made), set())


@pytest.mark.parametrize("quoting", ["needed", "texts", "all"])
def test_a_quote_too_many_costs_its_own_row_only_and_is_reported(tmp_path, quoting):
    for seed in range(25):
        r = random.Random(f"{seed}{quoting}")
        made = table(seed, r.choice([12, 40, 90]), awkward=r.choice(["", "delimiters", "lines"]))
        how = Writing(delimiter=r.choice(",;\t|"), quoting=quoting)
        lines = [written([row], how).decode() for row in made]
        at = r.randrange(1, len(lines))
        place = r.choice([n for n, sign in enumerate(lines[at]) if sign == how.delimiter]) + 1
        lines[at] = lines[at][:place] + '"' + lines[at][place:]
        got, said = read(tmp_path, "".join(lines).encode())
        rest = iter(got)
        assert all(row in rest for row in expected(made[:at] + made[at + 1 :])), (seed, how)
        assert said, (seed, how)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_older_encoding_is_found_from_twenty_rows_on(tmp_path, language):
    encodings, _ = LANGUAGES[language]
    for encoding in encodings:
        for rows in (20, 300):
            made = table(f"{language}{rows}", rows, words=words_of(language))
            got, _ = read(tmp_path, written(made, Writing(encoding=encoding)))
            assert got == expected(made), (encoding, rows)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_older_encoding_of_two_rows_is_found_or_reported(tmp_path, language):
    encodings, _ = LANGUAGES[language]
    wrong = 0
    for encoding in encodings:
        for seed in range(8):
            made = [row[:3] for row in table(f"{language}{seed}", 2, words=words_of(language))]
            got, said = read(tmp_path, written(made, Writing(encoding=encoding)))
            assert got == expected(made) or "encoding" in said, (encoding, seed)
            wrong += got != expected(made)
    assert wrong <= len(encodings) * 8 / 3, "telling is no way out"


@pytest.mark.parametrize("encoding", ["cp1252", "mac-roman", "cp850"])
def test_names_of_many_countries_in_one_file(tmp_path, encoding):
    """A customer list: no single language writes all its letters."""
    for rows in (4, 30, 300):
        for seed in range(6):
            made = table(f"{rows}{seed}", rows, words=NAMES)
            got, said = read(tmp_path, written(made, Writing(encoding=encoding)))
            assert got == expected(made) or (rows < 30 and "encoding" in said), (rows, seed)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_never_a_guess(tmp_path, language, encoding):
    for rows in (2, 40):
        made = table(f"{language}{rows}", rows, words=words_of(language))
        assert read(tmp_path, written(made, Writing(encoding=encoding))) == (expected(made), set()), rows


def test_a_large_file_in_every_older_encoding_is_cut_into_no_character(tmp_path):
    for language in ("Japanese", "Chinese", "Taiwanese", "Korean"):
        made = table(language, 2_500, words=words_of(language))
        for pad in range(3):
            made[1][0] = "9" * (4 + pad)
            got, said = read(tmp_path, written(made, Writing(encoding=LANGUAGES[language][0][0])))
            assert (got, said) == (expected(made), set()), (language, pad)


def test_the_oracle_is_not_the_engine():
    """The writer quotes as it says it does."""
    how = Writing(quoting="needed")
    assert written([["a", "b,c", 'd"e', ""]], how) == b'a,"b,c","d""e",\n'
    assert written([["a", "b"]], replace(how, blank=" ", end="\r\n")) == b"a, b\r\n"
