"""How a drafted manifest is written."""

import json

from console.desk.drafts import manifest_text


def test_what_nobody_sees_in_a_header_is_escaped_in_the_manifest():
    manifest = {"manifest": 1, "fields": [{"name": "a", "label": "\u202egnp\u200b\x9b größe 😀"}]}
    text = manifest_text(manifest)
    assert all(char.isprintable() for char in text.replace("\n", ""))
    assert "größe 😀" in text
    assert json.loads(text) == manifest
