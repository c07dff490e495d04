"""How a drafted manifest is written."""

import json

import pytest

from console.cli.commands.init import filled_at_once
from console.desk.drafts import manifest_text


def test_what_nobody_sees_in_a_header_is_escaped_in_the_manifest():
    manifest = {"manifest": 1, "fields": [{"name": "a", "label": "\u202egnp\u200b\x9b größe 😀"}]}
    text = manifest_text(manifest)
    assert all(char.isprintable() for char in text.replace("\n", ""))
    assert "größe 😀" in text
    assert json.loads(text) == manifest


@pytest.mark.parametrize("is_there", [False, True])
def test_a_package_is_written_whole_or_not_at_all(tmp_path, is_there):
    folder = tmp_path / "new"
    if is_there:
        folder.mkdir()

    def interrupted():
        with filled_at_once(folder) as place:
            (place / "manifest.json").write_text("{")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.rglob("*")) == ([folder] if is_there else [])
    with filled_at_once(folder) as place:
        (place / "tests").mkdir()
        (place / "manifest.json").write_text("{}")
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "tests"]
