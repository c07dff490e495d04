"""What a sender sees: their own files, what to do, and nothing else."""

import io
import json
import re

import openpyxl
import pytest

from console.web.own_words import LANGUAGES, words
from tests.support.console import ApiRig

SHARED = "configs/_shared/everyone/manifest.json"
SECRET = "operators-own-note"
WORKFLOW = {
    "manifest": 1,
    "name": "everyone",
    "description": SECRET,
    "tenants": ["acme"],
    "subscribe": ["**/*.csv"],
    "fields": [{"name": "name", "required": True}, {"name": "plan", "type": "enum", "allowed": ["basic", "gold"]}],
}


@pytest.fixture
def shared(rig: ApiRig) -> ApiRig:
    rig.stack.store.put(SHARED, json.dumps(WORKFLOW).encode())
    return rig


def own(rig: ApiRig, tenant="acme", path="/", language="en"):
    sender = rig.from_afar(rig.token("sender", tenant))
    return sender.get(path, headers={"Accept": "text/html", "Accept-Language": language}, follow_redirects=False)


def test_a_sender_sees_their_files_with_a_verdict_and_no_page_of_the_operator(shared):
    mine, other = shared.failed("mine", tenant="acme"), shared.failed("secret", tenant="umbrella")
    page = own(shared).text
    assert f'href="/jobs/{mine.job_id}"' in page
    assert other.job_id not in page
    assert re.findall(r'data-go="."[^>]*>([^<]+)<', page) == ["Your files", "Drop"]
    for path in ("/jobs", "/review", "/senders", f"/sender?tenant=acme&workflow={mine.workflow}"):
        answer = own(shared, path=path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/"), path


def test_a_file_is_dropped_from_the_page_without_a_manifest(shared):
    sender = shared.from_afar(shared.token("sender", "acme"))
    form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', own(shared).text))
    assert form == {"tenant": "acme", "manifest": ""}
    answer = sender.post("/drop", data=form, files={"files": ("p.csv", b"Name\nann\n")}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    assert "Being processed" in own(shared).text


@pytest.mark.parametrize(
    ("accepted", "title"),
    [("de-DE,en;q=0.5", "Ihre Dateien"), ("fr", "Vos fichiers"), ("es-MX", "Sus archivos"), ("ja", "Your files"),
     ("zz;q=1, de", "Ihre Dateien"), ("<script>", "Your files")],
)  # fmt: skip
def test_the_page_is_in_the_languages_of_the_browser(shared, accepted, title):
    assert f"<h1>{title}</h1>" in own(shared, language=accepted).text


def test_every_language_has_every_sentence_with_the_same_parameters():
    spoken = [words(language) for language in LANGUAGES]
    for key in spoken[0]:
        assert len({tuple(re.findall(r"\{\w+\}", one[key])) for one in spoken}) == 1, key
        assert all(one[key] for one in spoken)


def test_the_template_of_a_workflow_is_for_its_tenants_alone(shared):
    assert 'href="/template/everyone"' in own(shared).text
    book = openpyxl.load_workbook(io.BytesIO(own(shared, path="/template/everyone").content))
    assert [cell.value for cell in book.worksheets[0][1]] == ["name", "plan"]
    assert SECRET not in str([[cell.value for cell in row] for sheet in book for row in sheet.iter_rows()])
    assert own(shared, tenant="umbrella", path="/template/everyone").status_code == 404
    assert own(shared, path="/template/none").status_code == 404
    assert shared.from_afar(shared.token("reader")).get("/template/everyone").status_code == 403


def test_what_senders_call_their_files_is_escaped(shared):
    shared.failed("<img src=x onerror=alert(1)>", tenant="acme")
    assert "<img src=x" not in own(shared).text
