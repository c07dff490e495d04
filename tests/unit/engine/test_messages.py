"""The catalogue of the report's sentences: complete, and alike in every language."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from core.manifests import Language
from core.verdicts import Verdict
from runner.engine.pages.messages import LANGUAGES, catalogue
from runner.failures import is_reported

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "runner/engine/pages"
CATALOGUES = {language: json.loads((PAGES / f"catalogue/{language}.json").read_text()) for language in LANGUAGES}
ENGLISH = CATALOGUES["en"]
OTHERS = [language for language in LANGUAGES if language != "en"]
SENTENCES = ("finding.", "fix.", "verdict.")
LISTS = {"fix.pattern", "fix.not_allowed.listed", "fix.type_error.formats"}  # end with what they name


def forms(entry):
    return [entry] if isinstance(entry, str) else [entry["one"], entry["other"]]


def parameters(entry):
    return {name for form in forms(entry) for name in re.findall(r"\{([a-z_]+)\}", form)}


def documented_codes():
    table = (ROOT / "docs/reference/findings.md").read_text()
    return [code for line in re.findall(r"(?m)^\| (`[^|]+) \|", table) for code in re.findall("`([a-z_]+)`", line)]


def test_every_language_of_a_manifest_has_a_catalogue():
    assert set(get_args(Language)) == set(LANGUAGES)


@pytest.mark.parametrize("language", OTHERS)
def test_no_key_is_missing_in_a_language_and_none_is_there_alone(language):
    assert CATALOGUES[language].keys() ^ ENGLISH.keys() == set()


@pytest.mark.parametrize("language", OTHERS)
def test_a_sentence_names_the_same_parameters_in_every_language(language):
    differing = [key for key, entry in CATALOGUES[language].items() if parameters(entry) != parameters(ENGLISH[key])]
    assert differing == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_counted_has_a_form_for_one_and_one_for_several(language):
    for key, entry in CATALOGUES[language].items():
        assert isinstance(entry, str) == isinstance(ENGLISH[key], str), key
        assert isinstance(entry, str) or set(entry) == {"one", "other"}, key
        assert "count" not in parameters(entry) or not isinstance(entry, str), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_findings_remedies_and_verdicts_are_whole_sentences(language):
    for key, entry in CATALOGUES[language].items():
        if not key.startswith(SENTENCES) or key in LISTS or forms(entry) == ["{message}"]:
            continue
        for form in forms(entry):
            assert re.match(r"[A-ZÀ-Ý0-9{„«“¿]", form), (key, form)
            assert form.endswith((".", "?")), (key, form)
            assert form == form.strip(), (key, form)


@pytest.mark.parametrize("language", OTHERS)
def test_no_sentence_was_left_in_english(language):
    same = [key for key, entry in CATALOGUES[language].items() if entry == ENGLISH[key] and key.startswith(SENTENCES)]
    assert all(forms(ENGLISH[key]) == ["{message}"] for key in same), same


def test_every_documented_finding_has_a_sentence_and_every_sentence_a_documented_finding():
    codes = set(documented_codes())
    assert len(codes) > 100
    assert {code for code in codes if f"finding.{code}" not in ENGLISH} == set()
    named = {key.split(".")[1] for key in ENGLISH if key.startswith(("finding.", "fix."))}
    assert named - codes == {"stated"}


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if is_reported(verdict)])
def test_every_end_that_a_sender_or_author_can_do_something_about_is_said_and_has_a_remedy(verdict):
    limits = {Verdict.CPU, Verdict.MEMORY, Verdict.WALL_CLOCK, Verdict.FILE_SIZE, Verdict.PROCESSES}
    name = "limit" if verdict in limits else str(verdict)
    assert {f"verdict.{name}", f"verdict.{name}.do"} <= ENGLISH.keys()


def test_every_reason_for_which_a_file_is_unreadable_is_said_and_has_a_remedy():
    source = (ROOT / "runner/engine/reading/errors.py").read_text()
    reasons = set(re.findall(r'InputUnreadable\(\s*"([a-z_]+)"', source))
    assert len(reasons) == 8
    for reason in reasons:
        assert {f"verdict.input_unreadable.{reason}", f"verdict.input_unreadable.{reason}.do"} <= ENGLISH.keys()


def test_every_key_that_a_page_asks_for_is_there():
    asked = {
        key
        for name in ("report.py", "drawing.py", "fixes.py", "messages.py")
        for key in re.findall(r"""["']((?:page|verdict|kind|drift)\.[a-z_.0-9]+)["']""", (PAGES / name).read_text())
    }
    assert len(asked) > 40
    assert asked - ENGLISH.keys() == set()


@pytest.mark.parametrize(
    ("language", "number", "date"),
    [
        ("en", "1,234,567", "5 March 2026, 07:08 UTC"),
        ("de", "1.234.567", "5. März 2026, 07:08 UTC"),
        ("fr", "1\u202f234\u202f567", "5 mars 2026, 07:08 UTC"),
        ("es", "1.234.567", "5 de marzo de 2026, 07:08 UTC"),
    ],
)
def test_numbers_and_dates_are_written_as_in_the_language(language, number, date):
    assert catalogue(language).number(1_234_567) == number
    assert catalogue(language).date(1_772_694_480) == date


def test_percent_have_a_space_before_them_but_in_english():
    assert [catalogue(language).percent(0.954) for language in ("en", "de", "fr", "es")] == [
        "95%", "95\xa0%", "95\xa0%", "95\xa0%",
    ]  # fmt: skip


def test_none_is_one_thing_in_french_and_several_elsewhere():
    assert catalogue("fr")("page.files", count=0) == "0 fichier"
    assert catalogue("en")("page.files", count=0) == "0 files"
    assert catalogue("de")("page.files", count=1) == "1 Datei"


def test_an_unknown_language_is_english_and_an_unknown_parameter_breaks_nothing():
    assert catalogue("xx").language == "en"
    assert "…" in catalogue("en")("finding.min", count=2)
