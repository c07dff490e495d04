"""Every example of docs/reference/expressions.md, and every function and operator in it."""

import re
from datetime import date, datetime
from pathlib import Path

import pytest

from runner.engine.expressions.evaluation import Columns, evaluate_expression
from runner.engine.expressions.signatures import FUNCTIONS, KIND_OF_TYPE, OPERATORS, compile_expression

PAGE = (Path(__file__).parents[4] / "docs/reference/expressions.md").read_text()
EXAMPLES = re.findall(r"^\| `([^`]+)` \| ([^|`]*) \| ([^|`]+) \|$", PAGE, re.MULTILINE)


def read(text):
    """A value as the page writes it, and the type of a field that has such values."""
    if text == "blank":
        return None, "text"
    if text in ("true", "false"):
        return text == "true", "boolean"
    if text.startswith("'"):
        return text[1:-1], "text"
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return date.fromisoformat(text), "date"
    if "T" in text:
        return datetime.fromisoformat(text), "datetime"
    return (float(text), "decimal") if "." in text else (int(text), "integer")


def fields_of(text, expression):
    given = dict(re.findall(r"(\w[\w ]*) = ('[^']*'|[^,]+)", text))
    blank_is = "decimal" if re.search(r"amount|tax", expression) else "text"
    types = {name: blank_is if value == "blank" else read(value)[1] for name, value in given.items()}
    return types, {name: [read(value)[0]] for name, value in given.items()}


@pytest.mark.parametrize(("text", "fields", "wanted"), EXAMPLES, ids=[f"{e[0]} with {e[1]}" for e in EXAMPLES])
def test_an_example_gives_what_the_page_says(text, fields, wanted):
    types, columns = fields_of(fields, text)
    done = evaluate_expression(compile_expression(text, types), Columns(columns, {}, 1))
    if wanted.startswith("fails: "):
        assert [failure.why for failure in done.failed.values()] == [wanted.removeprefix("fails: ")]
        assert done.values == [None]
    else:
        assert done.values == [read(wanted)[0]]
        assert not done.failed


def test_every_function_operator_and_type_is_on_the_page():
    assert len(EXAMPLES) > 60
    assert [name for name in FUNCTIONS if f"{name}(" not in PAGE] == []
    assert [name for name in OPERATORS if name not in PAGE and name != "negative"] == []
    assert [name for name in KIND_OF_TYPE if f"`{name}`" not in PAGE] == []
