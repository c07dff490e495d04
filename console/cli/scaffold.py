"""The package that `ade init` creates: a manifest, rules of every kind, and a sample to try them on."""

MANIFEST = """\
{
  "manifest": 1,
  "name": "members",
  "description": "Declared fields do most of the work; config/ holds the Python for the rest.",
  "inputs": {"primary": ["*.xlsx", "*.csv"]},
  "config": "./config",
  "fields": [
    {"name": "member_id", "required": true, "unique": true, "synonyms": ["member #"], "clean": ["strip", "upper"]},
    {"name": "full_name", "synonyms": ["name"], "clean": ["strip", "collapse"]},
    {"name": "start_date", "type": "date", "synonyms": ["start"]},
    {"name": "gross_pay", "type": "money", "synonyms": ["pay"], "min": 0},
    {"name": "region"}
  ],
  "rules": [
    {"name": "paid_members_have_started",
     "when": {"field": "gross_pay", "op": "present"},
     "then": {"field": "start_date", "op": "present"},
     "severity": "warning"}
  ],
  "mapping": {"threshold": 0.7, "unmapped": "keep"},
  "params": {"home_region": "North"}
}
"""

MEMBER_ID = '''\
"""Rules for the field `member_id`. The file's name is the field's name.

A rule is a function that takes only the keyword arguments it names. Besides those used below there are: params,
state (a dict that lives as long as the job), lookups, log, job, input, sheet, table, field, header, column, rows.
Never put a cell's value into a message: messages go into artifact.json, values do not.
"""

import re

PATTERN = re.compile(r"M\\d{6}")


def detect_by_pattern(*, values_sample):
    """Score how much a column looks like this field. Scores of all rules are added up; the best assignment wins."""
    texts = [str(v).strip().upper() for v in values_sample if v is not None]
    share = sum(bool(PATTERN.fullmatch(t)) for t in texts) / len(texts) if texts else 0
    return {"scores": {"member_id": share}}


def transform(*, values):
    """Rewrite a chunk of the column: exactly one value out per value in."""
    return {"values": [v.replace(" ", "") if isinstance(v, str) else v for v in values]}


def validate(*, values):
    """Name what is wrong by its index in `values`; code and message must be literals."""
    return {
        "issues": [
            {"index": n, "code": "member_id_form", "message": "is not M and six digits", "severity": "error"}
            for n, v in enumerate(values)
            if isinstance(v, str) and not PATTERN.fullmatch(v)
        ]
    }
'''

REGION = '''\
"""Rules for the field `region`: a function that asks for `value` is called once per cell."""


def transform(*, value, params):
    return value if value not in (None, "") else params["home_region"]
'''

ROW_TYPE = '''\
"""Rows of this type are not data. The file's name is the label; a score above 0 is for it, below 0 against."""


def detect_subtotal(*, row_values_sample):
    first = next((v for v in row_values_sample if v not in (None, "")), "")
    return {"scores": {"total": 1.0 if str(first).strip().lower().startswith("subtotal") else 0.0}}
'''

HOOKS = '''\
"""Hooks run at fixed moments of a job. `accumulate` sees every chunk, `finalize` returns the result.

The others: on_job_start, after_structure, after_mapping, after_transform, after_validate, on_job_end.
"""


def accumulate(*, columns, state):
    """Add up per region, chunk by chunk: memory stays bounded, whatever the size of the file."""
    totals = state.setdefault("totals", {})
    for region, pay in zip(columns["region"], columns["gross_pay"], strict=True):
        if isinstance(pay, (int, float)):
            totals[region] = totals.get(region, 0) + pay


def finalize(*, state):
    """An extra sheet in normalized.xlsx: its rows, with the header first."""
    rows = sorted((str(region), total) for region, total in state.get("totals", {}).items())
    return {"sheets": {"Pay by region": [["region", "gross_pay"], *map(list, rows)]}}
'''

SAMPLE = """\
Member list 2026,,,,
,,,,
Member #,Name,Start,Pay,Region
m000 001,Ada  Byron,2026-01-05,"1,200.50",North
M000002, Grace Hopper,2026-01-12,980,
M12,Alan Turing,,1100,South
Subtotal,,,"3,280.50",
"""

README = """\
# A config package

- `manifest.json` says which files it takes, which fields come out, and what must hold for them.
- `config/columns/<field>.py` finds, rewrites and checks one field; `config/row_types/` finds rows that are not data;
  `config/hooks/` runs at fixed moments. Delete what you do not need: declared fields alone are enough for many jobs.
- `sample.csv` is something to try it on.

Try it locally, as often as you like:

    ade try sample.csv --manifest manifest.json --out result

Then drop it, with a file of your own:

    ade drop members.xlsx --manifest manifest.json --tenant acme --wait
"""

FILES = {
    "README.md": README,
    "manifest.json": MANIFEST,
    "sample.csv": SAMPLE,
    "config/columns/member_id.py": MEMBER_ID,
    "config/columns/region.py": REGION,
    "config/row_types/total.py": ROW_TYPE,
    "config/hooks/totals.py": HOOKS,
}
