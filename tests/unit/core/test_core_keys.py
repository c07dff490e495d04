import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import KeyRefused
from core.keys import check_key, is_spreadsheet, is_unfinished, line_folder, matches, output_folder, place, rejected_key


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("members.xlsx", "*.xlsx"),
        ("MEMBERS.XLSX", "*.xlsx"),
        ("a/b/c.xlsx", "**/*.xlsx"),
        ("c.xlsx", "**/*.xlsx"),
        ("2026-01/hr/m.xlsx", "2026-*/**/*.xlsx"),
        ("m1.csv", "m[0-9].csv"),
        ("mx.csv", "m[!0-9].csv"),
        ("a(1)+b.csv", "a(1)+b.csv"),
        ("m.csv", "./m.csv"),
    ],
)
def test_a_pattern_takes_what_a_person_would_expect(path, pattern):
    assert matches(path, pattern)


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("a/b.xlsx", "*.xlsx"),
        ("b.xlsm", "*.xlsx"),
        ("ab.csv", "a?c.csv"),
        ("a/b.csv", "a?b.csv"),
        ("a/b.csv", "a[/]b.csv"),
    ],
)
def test_a_pattern_stops_at_a_slash(path, pattern):
    assert not matches(path, pattern)


@given(st.text(), st.text(alphabet="ab*?[]!-/.\\", max_size=12))
def test_no_pattern_breaks_the_matcher(path, pattern):
    assert matches(path, pattern) in (True, False)


@pytest.mark.parametrize(
    "key", ["inbox/a/../b", "/inbox/a", "inbox//a", "inbox/a/.", "inbox/a\\b", "inbox/a\nb", "x" * 1025]
)
def test_a_key_that_reads_differently_elsewhere_is_refused(key):
    with pytest.raises(KeyRefused, match="key"):
        check_key(key)


@pytest.mark.parametrize("key", ["inbox/acme", "outputs/acme/x", "inbox/_shared/x", "inbox/-x/y", "inbox/a*b/y"])
def test_a_key_outside_a_tenants_inbox_belongs_nowhere(key):
    with pytest.raises(KeyRefused):
        place(key)


def test_outputs_mirror_the_inbox():
    assert output_folder("acme", "2026/m.xlsx", "members", "j") == "outputs/acme/2026/m.xlsx/members/j/"
    assert line_folder("acme", "", "members") == "outputs/acme/members/"


def test_a_rejection_stands_where_outputs_would_go():
    assert rejected_key("inbox/acme/2026/manifest.json") == "outputs/acme/2026/rejected.json"
    assert rejected_key("configs/acme/pay/manifest.json") == "outputs/acme/_configs/pay/rejected.json"


@pytest.mark.parametrize("name", [".m.xlsx.aB3", "m.xlsx.part", "~$m.xlsx", "m.csv.tmp", "m.xlsx.crdownload", "m.csv~"])
def test_a_file_that_its_writer_will_rename_is_not_a_spreadsheet_yet(name):
    assert is_unfinished(name)
    assert not is_spreadsheet(name)


@pytest.mark.parametrize(
    ("path", "sender"),
    [
        ("members.xlsx", ""),
        ("north/members.xlsx", "north/"),
        ("north/2026-11/members.xlsx", "north/"),
        ("north/2026/12/members.xlsx", "north/"),
        ("north/2026/12/24/members.xlsx", "north/"),
        ("2026-Q4/north/members.xlsx", "north/"),
        ("north/November/members.xlsx", "north/"),
        ("north/nov-2026/members.xlsx", "north/"),
        ("north/20261117/members.xlsx", "north/"),
        ("north/17.11.2026/members.xlsx", "north/"),
        ("north/2026W47/members.xlsx", "north/"),
        ("site 12/members.xlsx", "site 12/"),
        ("12/members.xlsx", "12/"),  # no year above it: a branch's number
        ("marchetti/members.xlsx", "marchetti/"),
        ("20261317/members.xlsx", "20261317/"),  # no such month
    ],
)
def test_folders_that_name_a_period_do_not_make_another_sender(path, sender):
    assert place(f"inbox/acme/{path}").sender == sender
