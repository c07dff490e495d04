"""What every key of a manifest means, in one sentence each: editors show it beside the key."""

from collections.abc import Mapping
from typing import Any, Final

Words = Mapping[str, str]

_MANIFEST: Final[Words] = {
    "$schema": "Where editors find the JSON Schema of manifests; ade-drop ignores it.",
    "manifest": "The version of the manifest's format: 1.",
    "name": "The workflow's name; part of the paths of its outputs.",
    "inputs": "Which files beside the manifest are processed, and which are looked up.",
    "subscribe": "A standing manifest's patterns of paths below the tenant's inbox.",
    "tenants": "Of a manifest in configs/_shared/: the tenants that it serves, by name or pattern; * for all.",
    "config": "Where the Python rules are: '.', a folder or zip beside the manifest, or configs/_shared/<name>.",
    "fields": "The columns of the output, in their order.",
    "rules": "Rules over several fields of one row.",
    "rows": "What becomes of the rows of a table before they are checked.",
    "mapping": "How columns become fields.",
    "review": "How long a job waits for a person's decision, and what happens if none comes.",
    "reading": "How inputs are read: which parts count, and what the sender knows better than detection does.",
    "output": "What the output workbook looks like.",
    "notify": "Who is notified of what; the operator has to allow each receiver.",
    "expect": "By when a drop is expected; if none has come, notify reports it as missing.",
    "on_rule_error": "A failing Python rule is a finding, or makes the job fail.",
    "on_error": "Rows with errors: keep them in the output, split them off into rejects.xlsx, or reject the whole job.",
    "keep_days": "How many days the outputs are kept; unset: as long as the operator says, who also sets the most.",
    "latest": "What latest.json names: the newest result that succeeded, or the newest end of any kind (any).",
    "min_rows": "The least number of data rows; a job with fewer fails. 0 accepts files without any.",
    "max_error_rate": "A share from 0 to 1; the job fails if more of its rows have errors.",
    "max_rejected_rows": "The job fails if more rows than this have errors.",
    "drift": "What happens if a drop's columns differ from those of the sender's last one.",
    "language": "The language of report.html.",
    "report": "What report.html shows.",
    "redact_headers": "True: no header text in the artifact and the report.",
    "params": "Parameters for Python rules.",
    "sweep": "Lists of parameters; one job is made per combination.",
    "schedule": "Which data the workflow is for, by the data's own time.",
    "data_time": "The data's own time, if it is not the time of the upload.",
    "not_before": "When a job may start at the earliest.",
    "limits": "What a job may use; the operator's settings cap it.",
    "runtime_network_access": "True: the rules ask for the network; the operator decides.",
    "priority": "From -10 to 10; higher goes first.",
    "description": "What the workflow is for; for people.",
}
_FIELD: Final[Words] = {
    "name": "The column's name in the output.",
    "scale": "Digits behind the point in csv, jsonl and parquet; of money 4 unless set.",
    "from": "Where the values come from, if not from a column of the table.",
    "map": "What values become, by the text of a cell without case and outer blanks.",
    "otherwise": "What happens to values that map does not name: finding (default), keep, blank, or a value.",
    "fill_down": "True: a blank cell takes the value above, within its table.",
    "label": "What people call the column; its header may say so too.",
    "type": "The type of its cells; text if absent. A cell of another type keeps its value and gets a finding.",
    "required": "True: a blank cell is an error, and so is a file without this column.",
    "optional": "True: a file may lack this column, and nothing is reported.",
    "max_blank_share": "A share from 0 to 1; the job fails if more of this field's values are blank.",
    "unique": "True: a value that occurs twice in a job is an error.",
    "synonyms": "What else its header may say; spelling, case and punctuation do not count.",
    "pattern": "A Python regular expression that the whole value has to match.",
    "clean": "What is done to texts first, in this order; strip if absent.",
    "formats": "How dates and times are written in the source, in strptime directives such as %d.%m.%Y.",
    "day_first": "Whether 02/03/2026 is the second of March (true) or the third of February (false).",
    "decimal": "The decimal sign of the source: a point or a comma.",
    "unit": "What a number without a percent sign means: share (0.45 is 45 %) or percent (45 is 45 %).",
    "min": "The least value: a number, or an ISO date or time in quotes.",
    "max": "The greatest value: a number, or an ISO date or time in quotes.",
    "min_length": "The least number of characters.",
    "max_length": "The greatest number of characters.",
    "allowed": "The values that may occur: a list, or a column of an auxiliary input.",
    "default": "The value if a cell is blank or no column was found.",
    "constant": "The value of every row; no column is searched for.",
    "merged": "fill: the value of a merged cell counts for every row and column that it covers.",
    "severity": "How bad a finding on this field is: error or warning.",
    "number_format": "A spreadsheet number format instead of the type's own.",
    "description": "What the field means; its first sentence is evidence for mapping columns to it.",
    "examples": "Values as they should look; for people.",
}
_COMPARISON: Final[Words] = {
    "field": "The field that is compared.",
    "op": "The operator; empty and present take no value.",
    "value": "A constant to compare with; a list for in and not in.",
    "other": "Another field of the same row to compare with.",
}
_KEYS: Final[Mapping[str, Words]] = {
    "Manifest": _MANIFEST,
    "FieldSpec": _FIELD,
    "Comparison": _COMPARISON,
    "RowRule": {
        "name": "The rule's name; findings name it.",
        "when": "The rule is checked only in rows where this holds; always, if absent.",
        "then": "What has to hold.",
        "check": "An expression that must not be false.",
        "unique": "Fields whose values together may occur once.",
        "sum": "A field whose sum is compared with a total.",
        "equals": "The total: total_row, or a field that has it.",
        "tolerance": "By how much the sum may differ.",
        "rows": "How many rows the output may have.",
        "message": "What a finding says if it does not hold; never a cell's value.",
        "severity": "How bad a finding is: error or warning.",
    },
    "Lookup": {"lookup": "The name of an auxiliary input.", "column": "The header of its column with the values."},
    "Inputs": {
        "primary": "Patterns of file names beside the manifest; each matching file becomes a job.",
        "auxiliary": "Lookup tables; they never trigger a job.",
        "per": "file: one job per file. drop: one job for all files of a folder, appended into one output.",
    },
    "Auxiliary": {
        "name": "What fields and rules call it.",
        "path": "Below the manifest's folder, or a whole key such as configs/_shared/plans.csv.",
        "required": "True: a job waits until it is there.",
    },
    "Mapping": {
        "threshold": "The least probability, 0 to 1, at which a column becomes a field.",
        "unmapped": "Other columns: keep them in place, prefix them raw_ at the end, or drop them.",
        "review": "When a person decides: never, where the job is unsure, or always.",
        "memory": "Shared memories to use beside the tenant's own: configs/_shared/<name>.memory.json.",
        "unsure": "Two probabilities: with review unsure, a column whose best field is between them is asked about.",
    },
    "ReviewTerms": {
        "expires": "How long a job waits for a decision: a number and s, m, h or d.",
        "on_expiry": "Then it fails, or runs with the likeliest answers (accept).",
    },
    "ReportOptions": {
        "values": "shown: report.html shows the value of each cell that a finding is about, cut to 80 characters.",
    },
    "Reading": {
        "captions": "Where captions above blocks of rows and above tables go.",
        "sheets": "Patterns of the sheets that are read.",
        "tables": "Which tables hold the records: a sheet, Sheet!A1:F20, or how a sheet is cut; others are left out.",
        "hidden_sheets": "Whether hidden sheets are read.",
        "hidden_rows": "Whether hidden rows are read.",
        "hidden_columns": "Whether hidden columns are read.",
        "encoding": "The encoding of text files, such as utf-8 or cp1252, if it cannot be found out.",
        "delimiter": "The delimiter of text files, if it cannot be found out.",
        "quote": "The quote character of text files; an empty one says that no character quotes.",
        "header": "none: the tables have no header row, and synonyms are column letters.",
        "header_rows": "The numbers of the header rows, if they cannot be found out.",
        "group_rows": "Captions between the data: drop them, keep them as rows, or fill them into a column.",
        "group_column": "With group_rows fill: the column that takes the captions.",
        "total_rows": "Rows that sum up others: leave out those that certainly do (auto), all of them, or none.",
        "note_rows": "Remarks between and below the records: leave them out with a warning, silently, or keep them.",
    },
    "Output": {
        "sheet": "The name of the sheet that is written.",
        "findings_sheet": "True: a sheet Findings beside it.",
        "header": "Whether the columns are headed by the fields' names or labels.",
        "provenance": "True: source_file, source_sheet and source_row at the end of every row.",
        "rejects": "True: rows with errors go to rejects.xlsx, for the sender to correct.",
        "formats": "Which files hold the rows: xlsx, csv, jsonl, parquet.",
        "csv": "How normalized.csv is written.",
        "split_by": "A field with allowed values: each value also gets files of its own, all other rows share one.",
        "load": "Into which table of a database the rows go as well.",
        "on_type_error": "Cells that are not of their type: keep them in the workbook, null, or reject the row.",
        "rescued": "True: a column with what csv, jsonl and parquet left blank because it is not of its column's type.",
    },
    "FromLabel": {
        "label": "The words of a label above or below the table; its value is right of it or below it.",
        "side": "Where the value is if both neighbours could be it: right of the label or below it.",
    },
    "TableShape": {
        "sheet": "The sheets that are cut so: a name or a pattern.",
        "ranges": "The tables of the sheet, such as A3:C94, header included.",
        "one": "True: the sheet holds one table.",
        "split": "Where the sheet is cut: at blank columns, at blank rows, or at both.",
    },
    "CaptionTarget": {"to": "The field that takes the captions; without such a field, a column at the end."},
    "RowShape": {
        "unpivot": "Columns that become rows, such as months across.",
        "filter": "An expression; rows for which it is false are left out.",
        "dedupe": "Of several rows with one key, one stays.",
        "sort": "Fields to sort by, the most important first; - before a name: the largest first.",
    },
    "Dedupe": {
        "key": "Fields that together identify a record.",
        "keep": "The row that stays: the first, the last, or the newest by another field.",
        "by": "With newest: the field that says which row is the newest.",
    },
    "RowCount": {"min": "The least number of rows.", "max": "The largest number of rows."},
    "OtherValue": {"value": "The value."},
    "FromExpression": {"expression": "Computed from other fields of the row; see docs/reference/expressions.md."},
    "FromColumns": {
        "columns": "Headers of several columns.",
        "combine": "coalesce: the first value that is there. join: all of them as one text.",
        "separator": "With join: what is between the values.",
    },
    "FromLookup": {
        "lookup": "The name of an auxiliary input.",
        "key": "The field whose value is looked up.",
        "match": "The column of the auxiliary input that has such values.",
        "column": "The column of the auxiliary input that the field takes.",
    },
    "Unpivot": {
        "columns": "Headers of the columns, or patterns such as 2024-*; upper and lower case do not count.",
        "name_to": "The field that takes the header of the column.",
        "value_to": "The field that takes the value of the cell.",
        "blanks": "Blank cells: drop makes no row of them, keep does.",
    },
    "FromCaption": {"caption": "True: the caption above the rows."},
    "FromFile": {"file": "True: the name of the input."},
    "FromSheet": {"sheet": "True: the name of the sheet."},
    "FromRow": {"row": "True: the number of the row in its sheet."},
    "LoadOutput": {
        "connection": "The operator's name of a database.",
        "table": "The table; made and widened as needed.",
        "mode": "append the rows, upsert them by key, or replace their partitions.",
        "key": "With upsert: the fields that identify a row.",
        "partition": "With replace: the fields whose values are replaced as a whole.",
    },
    "CsvOutput": {
        "delimiter": "What separates the cells.",
        "decimal": "The decimal sign.",
        "bom": "True: a byte-order mark first, by which Excel recognizes UTF-8.",
    },
    "Notify": {
        "to": "A URL, the ARN of a topic or bus, or mailto: and an e-mail address; the operator has to allow it.",
        "on": "Which ends are reported.",
    },
    "Expect": {
        "by": "The time of day, such as 09:00.",
        "tz": "Its time zone, such as Europe/Berlin.",
        "days": "The days on which a drop is expected.",
    },
    "DriftPolicy": {"columns": "accept the drop, ask a person (review), or fail."},
    "Schedule": {
        "start_time": "Data before this time is skipped.",
        "end_time": "Data from this time on is skipped.",
    },
    "Limits": {
        "timeout_seconds": "Wall-clock seconds of a job.",
        "cpu_seconds": "CPU seconds of a job.",
        "memory_mb": "Memory of a job, in MiB.",
        "file_mb": "The largest file that a job may write, in MiB.",
    },
}


def field_help(key: str) -> str:
    """What a key of a field means."""
    return _FIELD[key]


def described(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of the manifest with a description of each key."""
    models = {name: _with_words(name, model) for name, model in schema.get("$defs", {}).items()}
    return {**_with_words("Manifest", schema), "$defs": models}


def _with_words(name: str, model: Mapping[str, Any]) -> dict[str, Any]:
    words = _KEYS.get(name, {})
    keys = model.get("properties", {})
    made = {key: {**facts, "description": words[key]} if key in words else facts for key, facts in keys.items()}
    return {**model, "properties": made} if made else dict(model)
