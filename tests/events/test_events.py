"""Every shape that a change notice comes in, as golden files; each says what must happen."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.events import Change, ChangeKind, UnknownEvent, decode, newest

GOLDEN = {path.stem: json.loads(path.read_text()) for path in sorted(Path(__file__).parent.glob("*.json"))}


def told(changes: list[Change]) -> list[dict[str, str]]:
    """The changes as the golden files write them: without what the event did not tell."""
    found = []
    for change in changes:
        shown = {"bucket": change.bucket, "key": change.key, "kind": str(change.kind)}
        shown |= {"sequencer": change.sequencer} if change.sequencer else {}
        shown |= {"version": change.version} if change.version is not None else {}
        found.append(shown)
    return found


@pytest.mark.parametrize("name", [n for n, golden in GOLDEN.items() if "changes" in golden["expect"]])
def test_a_known_shape_gives_its_changes(name: str):
    assert told(decode(GOLDEN[name]["event"])) == GOLDEN[name]["expect"]["changes"]


@pytest.mark.parametrize("name", [n for n, golden in GOLDEN.items() if "changes" in golden["expect"]])
def test_text_and_bytes_give_the_same(name: str):
    text = json.dumps(GOLDEN[name]["event"])
    assert decode(text) == decode(text.encode()) == decode(GOLDEN[name]["event"])


@pytest.mark.parametrize("name", [n for n, golden in GOLDEN.items() if "error" in golden["expect"]])
def test_an_unknown_shape_is_refused_with_a_reason(name: str):
    with pytest.raises(UnknownEvent, match=GOLDEN[name]["expect"]["error"]):
        decode(GOLDEN[name]["event"])


def test_every_golden_file_says_what_must_happen():
    assert {n for n, g in GOLDEN.items() if len(g["expect"]) != 1 or not g["about"]} == set()


def test_the_list_of_sources_names_every_golden_file_once():
    readme = (Path(__file__).parent / "README.md").read_text()
    named = re.findall(r"^\| `([^`]+)` \|", readme, re.MULTILINE)
    assert sorted(named) == sorted(GOLDEN), "tests/events/README.md and the folder differ"


@pytest.mark.parametrize("name", [n for n, golden in GOLDEN.items() if golden["about"].startswith("Captured")])
def test_what_was_captured_is_listed_as_captured(name: str):
    readme = (Path(__file__).parent / "README.md").read_text()
    assert f"| `{name}` | captured" in readme


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda c: (
            st.lists(c)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "Records",
                        "s3",
                        "object",
                        "key",
                        "bucket",
                        "name",
                        "Type",
                        "Message",
                        "event_type",
                        "message",
                        "detail",
                        "source",
                        "eventVersion",
                        "eventName",
                        "eventSource",
                        "body",
                        "Sns",
                    ]
                ),
                c,
            )
        ),
        max_leaves=20,
    )
)
def test_whatever_comes_is_decoded_or_refused(body):
    try:
        decode(json.dumps(body))
    except UnknownEvent:
        return


class TestOrder:
    def change(self, key: str, kind: ChangeKind, sequencer: str) -> Change:
        return Change(bucket="drops", key=key, kind=kind, sequencer=sequencer)

    def test_the_later_sequencer_wins_whatever_came_first(self):
        made = self.change("a", ChangeKind.CREATED, "0055AED6DCD90281E5")
        gone = self.change("a", ChangeKind.REMOVED, "0055AED6DCD90281E7")
        assert newest([gone, made]) == newest([made, gone]) == [gone]

    def test_sequencers_of_differing_length_are_padded_on_the_right(self):
        early = self.change("a", ChangeKind.CREATED, "0055AED6DC")
        late = self.change("a", ChangeKind.REMOVED, "0055AED6DC01")
        assert newest([late, early]) == [late]

    def test_sequencers_are_hexadecimal_whatever_their_letters(self):
        early, late = (
            self.change("a", ChangeKind.CREATED, "0055aed6dc"),
            self.change("a", ChangeKind.REMOVED, "0055AED6DE"),
        )
        assert newest([late, early]) == [late]

    def test_without_sequencers_the_last_to_come_wins(self):
        first, last = self.change("a", ChangeKind.CREATED, ""), self.change("a", ChangeKind.REMOVED, "")
        assert newest([first, last]) == [last]

    def test_keys_are_not_compared_with_each_other(self):
        one, two = self.change("a", ChangeKind.CREATED, "01"), self.change("b", ChangeKind.CREATED, "02")
        assert newest([two, one]) == [two, one]
