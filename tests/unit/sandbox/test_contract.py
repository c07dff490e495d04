"""The contract of the box: what either side writes is what the other reads, and nothing else is taken."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import manifests
from core.jobs import InputRef, ObjectRef
from core.keys import LONGEST_OUTPUT, corrected_name
from core.verdicts import Verdict
from infra import reviews
from runner.engine.contract import (
    DATA_FILES,
    EXPLAINED,
    MAX_SPLIT_FILES,
    PUBLISHED_FILES,
    ContractBroken,
    DecisionFile,
    EndCode,
    EndError,
    FinalEvent,
    InputFacts,
    InputFile,
    JobFacts,
    LogLine,
    Order,
    OriginJob,
    OtherVersion,
    OutputName,
    PassProgress,
    SandboxFacts,
    SplitBy,
    StagedFile,
    VerifyOrder,
    check_published,
    decode_event,
)
from runner.sandbox.session import verdict_of
from tests.support.effort import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAME = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)
COUNT = st.integers(0, 2**53)
PATH = NAME.map(Path)
VALUES = st.dictionaries(NAME, st.none() | st.booleans() | COUNT | TEXT, max_size=3)
MAYBE = st.none() | NAME
JOB = st.builds(JobFacts, job_id=NAME, tenant=NAME, workflow=NAME, attempt=COUNT)
STAGED = st.builds(StagedFile, path=PATH, key=NAME, version=TEXT, sha256=TEXT)
DECISION = st.builds(DecisionFile, path=PATH, key=TEXT, version=TEXT, sha256=TEXT, by=TEXT)
BOX = st.builds(
    SandboxFacts,
    driver=NAME,
    level=NAME,
    rungs=st.none() | st.dictionaries(NAME, st.booleans(), max_size=2),
    gaps=st.none() | st.lists(TEXT, max_size=2).map(tuple),
)
PLACES = st.dictionaries(NAME, PATH | st.integers(3, 99), max_size=3)
PLAIN = st.builds(
    InputFile, role=st.sampled_from(["primary", "auxiliary"]), name=TEXT, path=PATH, size=COUNT, sha256=TEXT, file=TEXT
)
CORRECTED = st.builds(
    InputFile,
    role=st.just("mended"),
    name=TEXT,
    path=PATH,
    corrects=st.builds(
        OriginJob, job=NAME, inputs=st.lists(TEXT, max_size=2).map(tuple), earlier=st.booleans(), key=TEXT
    ),
)
VERIFY = st.builds(
    VerifyOrder,
    job=JOB,
    params=VALUES,
    config_digest=TEXT,
    known=st.lists(st.builds(InputFacts, role=NAME, name=TEXT, sha256=TEXT, size=COUNT), max_size=2).map(tuple),
    title=TEXT,
    formats=st.lists(TEXT, max_size=2).map(tuple),
    decision=st.none() | DECISION.map(DecisionFile.facts),
    answer_to=MAYBE,
    memories=st.lists(STAGED.map(StagedFile.facts), max_size=2).map(tuple),
    why=NAME,
    split=st.none() | st.builds(SplitBy, field=NAME, values=st.lists(NAME, min_size=1, unique=True).map(tuple)),
    audit=st.booleans(),
    review=st.booleans(),
    written=PLACES,
    outputs=PLACES,
    sandbox=BOX,
)
ORDER = st.builds(
    Order,
    job=JOB,
    manifest=VALUES,
    params=VALUES,
    inputs=st.lists(PLAIN | CORRECTED, max_size=4).map(tuple),
    config=st.none() | PATH,
    config_digest=TEXT,
    layer=MAYBE,
    answer_to=MAYBE,
    decision=st.none() | DECISION,
    accept=st.booleans(),
    sender=MAYBE,
    memories=st.lists(STAGED, max_size=2).map(tuple),
    headers=st.none() | PATH,
    refused=st.dictionaries(NAME, TEXT, max_size=2),
    previous=st.none() | STAGED.map(lambda one: replace(one, version="")),
    lost=st.lists(TEXT, max_size=2).map(tuple),
    outputs=PLACES,
    sandbox=BOX,
    verification=st.none() | VERIFY,
)


def over_the_wire(value):
    return json.loads(json.dumps(value, allow_nan=False))


@settings(max_examples=examples(60), deadline=None)
@given(ORDER)
def test_an_order_is_read_as_it_was_written(order):
    assert Order.decode(over_the_wire(order.encode())) == order


@settings(max_examples=examples(60), deadline=None)
@given(VERIFY)
def test_an_order_to_verify_is_read_as_it_was_written(order):
    assert VerifyOrder.decode(over_the_wire(order.encode())) == order


WHERE = st.dictionaries(st.sampled_from(["input", "line", "rule", "file"]), COUNT | st.text("ab c", max_size=9))
ENDS = st.builds(
    FinalEvent, st.just({}), st.builds(EndError, st.sampled_from(EndCode), st.text("ab", max_size=9), WHERE)
)
EVENTS = (
    st.builds(PassProgress, st.sampled_from(["structure", "write"]), st.integers(0, 2**53 - 1), st.none() | st.just(9))
    | st.builds(LogLine, NAME, NAME, VALUES)
    | st.builds(FinalEvent, VALUES, verified=st.booleans())
    | ENDS
)


@settings(max_examples=examples(60), deadline=None)
@given(EVENTS)
def test_an_event_is_read_as_it_was_written(event):
    assert decode_event(over_the_wire(event.encode())) == event


def order(**changed):
    source = InputFile(role="primary", name="a.csv", path=Path("in/0"), size=1, sha256="0" * 64)
    memory = StagedFile(path=Path("in/m"), key="k", version="v", sha256="s")
    whole = Order(
        job=JobFacts(job_id="acme-m-1", tenant="acme", workflow="m", attempt=1),
        manifest={"name": "m"},
        inputs=(
            source,
            replace(source, role="mended", corrects=OriginJob(job="j", inputs=("a.csv",))),
        ),
        decision=DecisionFile(path=Path("in/d"), key="k", version="v", sha256="s", by="ann"),
        memories=(memory,),
        headers=Path("in/h"),
        refused={"k": "why"},
        previous=replace(memory, version=""),
        sender="north",
        outputs={"artifact.json": Path("out")},
        sandbox=SandboxFacts(driver="jail", level="none", rungs={}, gaps=()),
        verification=VerifyOrder(
            job=JobFacts(), params={}, config_digest="", known=(source.facts,), memories=(memory.facts(),)
        ),
    )
    return over_the_wire(replace(whole, **changed).encode())


def places(value, at=()):
    """The way to every part of a JSON document."""
    yield at
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*at, key))


FREE = ("manifest", "params")  # whatever JSON; validated before
PARTS = [at for at in places(order()) if at and at[0] not in FREE and "params" not in at]


@pytest.mark.parametrize("at", PARTS, ids=lambda at: ".".join(map(str, at)))
def test_a_part_of_another_kind_is_refused_and_named_by_its_key(at):
    raw = order()
    inside = raw
    for step in at[:-1]:
        inside = inside[step]
    inside[at[-1]] = 1.5
    with pytest.raises(ContractBroken) as broken:
        Order.decode(raw)
    named = [step for step in at if isinstance(step, str)]
    assert isinstance(broken.value, OtherVersion) or any(step in str(broken.value) for step in named)
    assert "1.5" not in str(broken.value), "the value itself may be anything"


@pytest.mark.parametrize("part", ["manifest", "inputs", "outputs", "order"])
def test_an_order_without_a_part_that_every_job_needs_is_refused(part):
    raw = order()
    del raw[part]
    with pytest.raises(ContractBroken, match=part):
        Order.decode(raw)


@pytest.mark.parametrize("raw", [None, [], "order", 1])
def test_what_is_no_object_is_no_order(raw):
    for kind in (Order, VerifyOrder):
        with pytest.raises(ContractBroken):
            kind.decode(raw)


def test_another_version_is_told_from_a_broken_order():
    with pytest.raises(OtherVersion):
        Order.decode(order() | {"order": 2})


def test_what_neither_side_may_say_is_refused_before_it_is_written():
    plain = {"name": "a", "path": Path("a")}
    origin = OriginJob(job="j", inputs=("a",))
    with pytest.raises(ContractBroken):
        InputFile(role="secondary", **plain)
    with pytest.raises(ContractBroken):
        InputFile(role="mended", **plain)
    with pytest.raises(ContractBroken):
        InputFile(role="primary", corrects=origin, **plain)
    with pytest.raises(ContractBroken):
        Order(manifest={}, inputs=(InputFile(role="mended", corrects=replace(origin, knows=(0,)), **plain),))
    with pytest.raises(ContractBroken):
        PassProgress("cooking", 1)


def test_paths_move_below_a_folder_and_absolute_ones_and_descriptors_stay():
    made = Order.decode(order(outputs={"a": Path("a"), "b": Path("/b"), "c": 5})).below(Path("/job"))
    assert made.outputs == {"a": Path("/job/a"), "b": Path("/b"), "c": 5}
    assert [one.path for one in (*made.inputs, *made.memories, made.previous, made.decision)] == [
        Path("/job/in") / name for name in ("0", "0", "m", "m", "d")
    ]
    assert made.headers == Path("/job/in/h")
    assert made.below(Path("/elsewhere")) == made


def test_every_end_has_a_verdict_and_those_that_are_explained_are_called_alike():
    assert {verdict_of(code) for code in EndCode} <= {*Verdict}
    assert {str(verdict_of(EndCode(code))) for code in EXPLAINED} == EXPLAINED
    assert {"nothing_mapped", "empty_input", "rows_rejected", "drifted", "needs_review"} == EXPLAINED


@pytest.mark.parametrize(
    "names",
    [["profile.json"], ["rejects.jsonl"], ["result.json"], ["../artifact.json"], ["a/b"], [""], ["artifact.json"] * 2,
     ["corrected-x.xlsx"], ["corrected.xlsx\n"]],
)  # fmt: skip
def test_a_name_that_no_job_publishes_is_refused(names):
    with pytest.raises(ContractBroken):
        check_published(names, succeeded=True)


def test_only_a_success_has_files_with_data():
    check_published(PUBLISHED_FILES, succeeded=True)
    for name in DATA_FILES:
        with pytest.raises(ContractBroken):
            check_published([name], succeeded=False)
    check_published(PUBLISHED_FILES - DATA_FILES, succeeded=False)


@pytest.mark.parametrize("key", ["inbox/a/b.XLSX", "inbox/a/b.csv", "inbox/a/b", "inbox/a/b.unknown"])
@pytest.mark.parametrize("number", [0, 7])
def test_copies_of_corrected_inputs_may_be_published(key, number):
    item = InputRef(name="b", role="primary", ref=ObjectRef(key=key, version="v", digest="d", size=1))
    check_published([corrected_name(number, item)], succeeded=True)


@pytest.mark.parametrize("name", ["normalized-../x.csv", "normalized-a/b.csv", "normalized-.csv", "normalized-A.csv",
                                  "normalized-a.exe", "normalized-_others.csv", "normalized-a.csv\n"])  # fmt: skip
def test_no_other_name_passes_for_that_of_a_split_file(name):
    with pytest.raises(ContractBroken):
        check_published([name], succeeded=True)


def test_split_files_are_data_too():
    named = SplitBy(field="region", values=("North", "Süd")).files(["csv"])
    check_published(named, succeeded=True)
    with pytest.raises(ContractBroken):
        check_published(named, succeeded=False)


def test_rooms_below_the_runner_call_the_files_alike():
    assert reviews.REVIEW == OutputName.REVIEW
    alike = SplitBy(field="f", values=tuple(f"{'x' * 30}{n}" for n in range(MAX_SPLIT_FILES - 1)))
    assert len(LONGEST_OUTPUT) == max(map(len, (*PUBLISHED_FILES, *alike.files(["parquet"]))))
    assert MAX_SPLIT_FILES == manifests.MAX_SPLIT_FILES
