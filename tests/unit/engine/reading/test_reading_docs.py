"""docs/explanation/reading.md: its example runs, its tables are complete."""

import re
from dataclasses import fields
from pathlib import Path

from runner.engine.reading import ReadLimits, errors

PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "reading.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_the_example_prints_what_the_page_says(tmp_path, monkeypatch, capsys):
    (tmp_path / "members.csv").write_text("id;naam\n\n007;Zoë\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python")[0], str(PAGE), "exec"), {})
    assert capsys.readouterr().out == blocks("text")[0]


def test_every_code_of_a_refusal_is_explained():
    source = Path(errors.__file__).read_text("utf-8")
    codes = set(re.findall(r'InputUnreadable\(\s*"(\w+)"', source))
    assert codes == set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))
    assert len(codes) == 8


def test_the_numbers_on_the_page_are_the_limits():
    limits = ReadLimits()
    text = PAGE.read_text("utf-8")
    assert f"{limits.layout_rows:,} rows" in text
    assert f"{limits.max_loaded_bytes // 2**20} MiB" in text


def test_every_limit_is_used():
    package = Path(errors.__file__).parent
    used = "".join(one.read_text("utf-8") for one in package.rglob("*.py") if one.name != "limits.py")
    assert [one.name for one in fields(ReadLimits) if f".{one.name}" not in used] == []
