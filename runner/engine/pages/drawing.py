"""Draws an artifact as HTML: the sheet as a grid, columns with probability bars, what to fix. No scripts, no values.

Both report.html and the console use it. All text comes from a box, so all of it is escaped and bounded here. Nothing
carries a style attribute: pages that show it forbid inline styles, and `STYLE` has every class it uses.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from itertools import pairwise
from typing import Any, Final, NamedTuple

from runner.engine.common import a1
from runner.engine.pages.messages import ENGLISH, Catalogue, catalogue

STYLE: Final = (
    ":root{color-scheme:light dark;--page:#f5f7fa;--card:#fff;--ink:#17202b;--soft:#556272;--line:#d5dce5;"
    "--mark:#1d5fc4;--error:#b3121f;--warning:#8a5200;--good:#14723b;--error-back:#fde7e8;--warning-back:#fdf0d8;"
    "--good-back:#e0f4e7;--head:#dbe7fb;--data:#eef6ee;--total:#f6e5c8;--note:#ece8f6;--none:#f0f2f5}"
    "@media(prefers-color-scheme:dark){:root{--page:#10151b;--card:#19212a;--ink:#e7edf4;--soft:#a3b1c1;"
    "--line:#36424f;--mark:#86b7ff;--error:#ff9a9f;--warning:#f3c069;--good:#7fdba1;--error-back:#45191d;"
    "--warning-back:#40300f;--good-back:#14351f;--head:#223a5e;--data:#1c3226;--total:#46371c;--note:#352f4a;"
    "--none:#222b35}}"
    ".scroll{overflow-x:auto;max-width:100%}.scroll:focus-visible{outline:2px solid var(--mark)}"
    ".grid{border-collapse:collapse;font-size:.8rem;min-width:40%}.grid caption{text-align:left;padding:.3rem 0;"
    "color:var(--soft)}.grid th,.grid td{border:1px solid var(--line);padding:.15rem .45rem;text-align:center;"
    "vertical-align:top;min-width:2.2rem;max-width:11rem;overflow-wrap:break-word;background:none;color:inherit;"
    "position:static}.grid thead th{background:var(--none);color:var(--soft);font-weight:500}"
    ".grid tbody th{white-space:nowrap;text-align:right;font-weight:500;color:var(--soft);background:var(--none)}"
    ".grid .what{text-align:left;white-space:nowrap;color:var(--soft);border-color:transparent}"
    ".grid .k-header{background:var(--head);font-weight:600}.grid .k-title{background:var(--none);font-style:italic}"
    ".grid .k-data{background:var(--data)}.grid .k-total{background:var(--total)}"
    ".grid .k-group,.grid .k-note,.grid .k-repeated_header,.grid .k-outside,.grid .k-blank{background:var(--note)}"
    ".grid .k-hidden,.grid .k-filtered,.grid .k-duplicate,"
    ".grid .k-skipped_table,.grid .k-beside,.grid .k-dropped{background:repeating-linear-gradient("
    "45deg,var(--none),var(--none) 4px,var(--line) 4px,var(--line) 6px)}.grid .k-rejected{background:var(--error-back)}"
    ".grid .became{display:block;font-weight:500;color:var(--mark)}.grid .became::before{content:'→ '}"
    ".hit{display:inline-block;min-width:1.2rem;border-radius:.6rem;padding:0 .3rem;font-weight:600;"
    "text-decoration:none}.hit.error{background:var(--error-back);color:var(--error)}"
    ".hit.warning{background:var(--warning-back);color:var(--warning)}"
    ".bar{width:6rem;height:.5rem;vertical-align:middle;border-radius:.25rem}.bar rect{fill:var(--line)}"
    ".bar .high{fill:var(--good)}.bar .middle{fill:var(--warning)}.bar .low{fill:var(--error)}"
    ".small .bar{width:3rem}.reason{display:inline-block;margin:0 .3rem .2rem 0;padding:0 .45rem;border-radius:.7rem;"
    "background:var(--none);font-size:.85rem}.reason.against{color:var(--warning);background:var(--warning-back)}"
    ".columns details{font-size:.9em}.columns summary{cursor:pointer;color:var(--mark)}"
    ".legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.85rem;color:var(--soft)}"
    ".legend i{display:inline-block;min-width:1.3rem;height:1.1rem;line-height:1.1rem;border:1px solid var(--line);"
    "vertical-align:middle;"
    "text-align:center;font-style:normal;border-radius:.2rem}.legend i.hit{border:0}"
    ".k-header{background:var(--head)}.k-data{background:var(--data)}.k-total{background:var(--total)}"
    ".k-note{background:var(--note)}.k-beside{background:repeating-linear-gradient(45deg,var(--none),var(--none) 4px,"
    "var(--line) 4px,var(--line) 6px)}"
    ".error-text{color:var(--error)}.warning-text{color:var(--warning)}.soft{color:var(--soft)}"
)
MAX_SECTION_CHARACTERS: Final = 2 * 1024 * 1024  # characters of one list; artifact.json has all of it
_LONGEST_TEXT: Final = 2000  # characters of one text
_MOST_COLUMNS: Final = 40  # drawn in one grid
_MOST_BANDS: Final = 48
_LAST_BANDS: Final = 8  # of the bands, from the sheet's end
_LONGEST_HEADER: Final = 40  # characters of a header in the grid
_SURE_SHARE: Final = 0.85  # a column that is less likely its field is in doubt
_MOST_CHANGES: Final = 100  # of one kind since the last drop
_MOST_CONTRIBUTORS: Final = 12  # to a probability
_EVEN_SHARE: Final = 0.5
_LIKELY_SHARE: Final = 0.3  # and so is one without a field that is so likely one
_SEPARATORS = re.compile("[^A-Za-z0-9]+")
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
# One line of a manifest, or two, and whose it is; as the engine's choices have it.
_SETTING = re.compile(r'("[a-z_]+": .+?)(?: \(or ([^)]+)\)| or ("[a-z_]+": .+?))?(?: on field (.+))?')
_CELL = re.compile(r"(?P<letters>[A-Z]{1,3})(?P<row>[0-9]{1,7})")


def without_hidden(text: str) -> str:
    """Replace marks that nobody sees, such as those that turn a text's direction and so show another text."""
    return text if text.isprintable() else _HIDDEN.sub("\ufffd", text)


def escape(text: str) -> str:
    """Escape a text for a page, and cut it to 2,000 characters; the standard library's own function loads a table of
    two thousand entities."""
    if len(text) > _LONGEST_TEXT:
        text = text[: _LONGEST_TEXT - 1] + "…"
    text = without_hidden(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;")


def bounded(lines: Iterable[str], phrases: Catalogue) -> tuple[str, str]:
    """Join as many of the lines as a section has room for; return them, and a note as markup that is empty if all have
    room."""
    shown: list[str] = []
    room = MAX_SECTION_CHARACTERS
    for line in lines:
        room -= len(line)
        if room < 0:
            return "".join(shown), f"<p>{escape(phrases('page.cut'))}</p>"
        shown.append(line)
    return "".join(shown), ""


def share(column: Mapping[str, Any]) -> float:
    """Return how likely a column or a runner-up is right, 0 to 1. Artifacts of earlier versions have a score."""
    return min(1.0, max(0.0, float(column.get("probability", column.get("score")) or 0.0)))


def bar(value: float, phrases: Catalogue | None = None) -> str:
    """Draw a probability as a bar with its number, as markup; in English without a catalogue."""
    kind, number = _bar_kind(value), (phrases or catalogue(ENGLISH)).percent(value)
    return (
        f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width="100" '
        f'height="8"/><rect class="{kind}" width="{100 * value:.0f}" height="8"/></svg> {number}'
    )


def _bar_kind(value: float) -> str:
    """Return the class of a bar, which is its colour."""
    if value >= _SURE_SHARE:
        return "high"
    return "middle" if value >= _EVEN_SHARE else "low"


class _Band(NamedTuple):
    """A run of rows, first and last."""

    first: int
    last: int


class _Area(NamedTuple):
    """A rectangle of cells."""

    left: int
    right: int
    top: int
    bottom: int


def _row_and_column(cell: str) -> tuple[int, int]:
    """Return row and column of a cell's address, from 1; zeros if it is not one."""
    address = _CELL.fullmatch(cell)
    return (0, 0) if address is None else (int(address["row"]), a1.column_number(address["letters"]))


def _parse_area(text: str) -> _Area:
    """Return the area that a range such as B2:D9, or a cell, names; zeros for what is not an address."""
    start, _, end = text.partition(":")
    (top, left), (bottom, right) = _row_and_column(start), _row_and_column(end or start)
    return _Area(left, right, top, bottom)


class _SheetGrid:
    """Draws one sheet: its columns across, its runs of rows down."""

    def __init__(self, artifact: Mapping[str, Any], sheet: Mapping[str, Any], link: str, phrases: Catalogue) -> None:
        """Sort the parts of one sheet for drawing. `link`: where the count of a column's findings leads; empty:
        nowhere."""
        self._sheet = sheet
        self._words = phrases
        self._link = link
        self._tables = {table["ref"]: table for table in sheet["tables"]}  # by short name
        self._areas = {ref: _parse_area(table["range"]) for ref, table in self._tables.items()}
        self._beside = [_parse_area(part["range"]) for part in sheet["beside"]]
        ids = {table["id"] for table in sheet["tables"]}
        # What each column became, by the id of its table and its number.
        self._columns = {
            (mapped["table"], a1.column_number(mapped["column"])): mapped
            for mapped in artifact["mapping"]
            if mapped["table"] in ids
        }
        self._dropped = {
            (ref, a1.column_number(part["column"]))
            for ref, table in self._tables.items()
            for part in table["left_out_columns"]
        }
        self._runs: dict[str | None, list[Mapping[str, Any]]] = {}  # of each table, and under None of no table
        for run in sheet["rows"]:
            self._runs.setdefault(run.get("table"), []).append(run)
        for runs in self._runs.values():
            runs.sort(key=lambda run: int(run["from"]))
        self._starts = {ref: [run["from"] for run in runs] for ref, runs in self._runs.items()}  # of the same runs
        self._findings = self._findings_by_column(artifact["validation"]["findings"])
        self._unlisted = _partly_listed(artifact["validation"])

    def _findings_by_column(self, findings: Sequence[Mapping[str, Any]]) -> dict[int, list[tuple[int, str]]]:
        """Return row and severity of each finding about a cell of this sheet, by the number of its column."""
        by_column: dict[int, list[tuple[int, str]]] = {}
        for finding in findings:
            is_of_input = finding.get("input") in (None, self._sheet["input"])
            if finding.get("cell") and finding.get("sheet") == self._sheet["name"] and is_of_input:
                row, column = _row_and_column(finding["cell"])
                by_column.setdefault(column, []).append((row, finding["severity"]))
        return by_column

    def draw(self) -> str:
        """Draw the grid as HTML; of a sheet without cells a sentence."""
        width = max([area.right for area in (*self._areas.values(), *self._beside)], default=0)
        top, bottom, hidden = self._split_in_bands()
        phrases = self._words
        if not width or not top:
            return f"<p>{_caption_text(self._sheet, phrases)}: {escape(phrases('page.unread'))}</p>"
        shown_columns = min(width, _MOST_COLUMNS)
        head = "".join(f'<th scope="col">{a1.letters(number)}</th>' for number in range(1, shown_columns + 1))
        beyond = escape(phrases("page.columns.beyond", count=width - shown_columns))
        more = f'<th scope="col">{beyond}</th>' if width > shown_columns else ""
        rows = [self._draw_band(band, shown_columns, width > shown_columns) for band in top]
        if hidden:
            runs = escape(phrases("page.runs.more", count=hidden))
            rows.append(f'<tr><td class="what" colspan="{shown_columns + 1}">{runs}</td></tr>')
        rows += [self._draw_band(band, shown_columns, width > shown_columns) for band in bottom]
        body, note = bounded(rows, phrases)
        name = escape(phrases("page.sheet", name=self._sheet["name"]))
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table class="grid">'
            f"<caption>{_caption_text(self._sheet, phrases)}</caption>"
            f'<thead><tr><th scope="col">{phrases("page.head.row")}</th>{head}{more}'
            f'<th scope="col" class="what">{phrases("page.head.kind")}</th></tr></thead>'
            f"<tbody>{body}</tbody></table></div>{note}"
        )

    def _split_in_bands(self) -> tuple[list[_Band], list[_Band], int]:
        """Split the sheet into bands of rows in which every column is of one kind.

        Returns the first bands, the last ones, and how many runs of rows between them are not shown.
        """
        runs = self._sheet["rows"]
        if len(runs) <= _MOST_BANDS:
            return self._bands_between(runs), [], 0
        first = self._bands_between(nsmallest(_MOST_BANDS - _LAST_BANDS, runs, key=lambda run: run["from"]))
        last = self._bands_between(nlargest(_LAST_BANDS, runs, key=lambda run: run["to"]))
        return first, [band for band in last if band.first > first[-1].last], len(runs) - _MOST_BANDS

    def _bands_between(self, runs: Sequence[Mapping[str, Any]]) -> list[_Band]:
        """Return the bands between the edges of these runs and of header rows."""
        edges = {int(run["from"]) for run in runs} | {int(run["to"]) + 1 for run in runs}
        low, high = min(edges, default=0), max(edges, default=0)
        heads = (head for table in self._sheet["tables"] for head in table["header_rows"][:20] if low <= head < high)
        edges |= {row for head in heads for row in (head, head + 1)}
        bands = [_Band(first, after - 1) for first, after in pairwise(sorted(edges))]
        return [band for band in bands if any(self._run_at(ref, band.first) for ref in self._runs)]

    def _run_at(self, ref: str | None, row: int) -> Mapping[str, Any] | None:
        """Return the run of a table (None: of no table) that a row is in; None if it is in none of these."""
        index = bisect_right(self._starts[ref], row) - 1
        run = self._runs[ref][index] if index >= 0 else None
        return run if run is not None and run["from"] <= row <= run["to"] else None

    def _draw_band(self, band: _Band, shown: int, cut: bool) -> str:  # noqa: FBT001 - private
        """Draw a band as a row of the grid. `cut`: there are more columns than are shown."""
        runs = {ref: run for ref in self._runs if (run := self._run_at(ref, band.first)) is not None}
        cells = "".join(self._draw_cell(band, column, runs) for column in range(1, shown + 1))
        phrases = self._words
        label = "-".join(phrases.number(row) for row in dict.fromkeys((band.first, band.last)))
        kinds = dict.fromkeys(str(run["as"]) for run in runs.values())
        row_count = band.last - band.first + 1
        parts = [kind_words(kind, phrases) for kind in kinds]
        parts += [phrases("page.band.rows", count=row_count)] if row_count > 1 else []
        return (
            f'<tr><th scope="row">{label}</th>{cells}{"<td></td>" if cut else ""}'
            f'<td class="what">{escape(" · ".join(parts))}</td></tr>'
        )

    def _draw_cell(self, band: _Band, column: int, runs: Mapping[str | None, Mapping[str, Any]]) -> str:
        """Draw a cell of the grid: of a table, beside one, or outside of all. `runs`: those of the band, by table."""
        for ref, run in runs.items():
            area = self._areas.get(ref) if ref is not None else None
            if area is not None and area.left <= column <= area.right and ref is not None:
                return self._draw_table_cell(band, column, ref, str(run["as"]))
        if any(
            area.left <= column <= area.right and area.top <= band.last and band.first <= area.bottom
            for area in self._beside
        ):
            return f'<td class="k-beside" title="{escape(self._words("kind.beside"))}"></td>'
        if None in runs:
            return f'<td class="k-{escape(str(runs[None]["as"]))}"></td>'
        return "<td></td>"

    def _draw_table_cell(self, band: _Band, column: int, ref: str, kind: str) -> str:
        """Draw a cell of a table: its header and field, or the counts of its findings; `kind`: of the rows of the
        band."""
        table = self._tables[ref]
        mapped = self._columns.get((table["id"], column))
        content, css_kind = "", kind
        heads = table["header_rows"]
        if kind == "header" and heads and band.first == heads[-1] and mapped is not None:
            content = escape(_cut_header(mapped["header"] or ""))
            if mapped["target"]:
                content += f'<span class="became">{escape(_cut_header(mapped["target"]))}</span>'
        elif kind != "header" and (ref, column) in self._dropped:
            css_kind = "dropped"
        if kind == "data":
            content = self._draw_counts(band, column, str((mapped or {}).get("target") or ""))
        return f'<td class="k-{escape(css_kind)}">{content}</td>'

    def _draw_counts(self, band: _Band, column: int, field: str) -> str:
        """Draw how many errors and warnings a column has in a band; empty if it has none. `field`: what it became."""
        counts: dict[str, int] = {}
        for row, severity in self._findings.get(column, ()):
            if band.first <= row <= band.last:
                counts[severity] = counts.get(severity, 0) + 1
        return " ".join(
            self._draw_count(column, severity, counts[severity], self._unlisted.get((field, severity), 0))
            for severity in ("error", "warning")
            if severity in counts
        )

    def _draw_count(self, column: int, severity: str, count: int, total: int) -> str:
        """Draw the count of a column's findings of a severity: as a link to them, if there is a page for it.

        `total`: all there are, where not all of them are listed, and the count is of those that are; else 0.
        """
        title = escape(self._words(f"page.mark.{severity}", count=total or count, letters=a1.letters(column)))
        text = self._words.number(count) + ("+" if total else "")
        if not self._link:
            return f'<span class="hit {severity}" title="{title}">{text}</span>'
        href = f"{escape(self._link)}column={a1.letters(column)}&amp;severity={severity}#findings"
        return f'<a class="hit {severity}" href="{href}" title="{title}">{text}</a>'


def _partly_listed(validation: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Count all findings of each field and severity of which an artifact lists only some."""
    if validation["kept"] >= validation["total"]:
        return {}
    listed, totals = dict[tuple[str, str], int](), dict[tuple[str, str], int]()
    for finding in validation["findings"]:
        key = str(finding.get("field") or ""), str(finding["severity"])
        listed[key] = listed.get(key, 0) + 1
    for total in validation["totals"]:
        key = str(total["field"] or ""), str(total["severity"])
        totals[key] = totals.get(key, 0) + int(total["count"])
    return {key: count for key, count in totals.items() if count > listed.get(key, 0)}


def _cut_header(text: str) -> str:
    """Cut a header to what the grid has room for."""
    return text if len(text) <= _LONGEST_HEADER else text[: _LONGEST_HEADER - 1] + "…"


def kind_words(kind: str, phrases: Catalogue) -> str:
    """Name the kind of some rows in the catalogue's words; in the kind's own where it has none."""
    key = f"kind.{kind}"
    return phrases(key) if key in phrases else kind.replace("_", " ")


def _caption_text(sheet: Mapping[str, Any], phrases: Catalogue) -> str:
    """Write the input and the sheet, for a caption."""
    return f"{escape(str(sheet['input']))} · {escape(phrases('page.sheet', name=sheet['name']))}"


def legend(phrases: Catalogue) -> str:
    """Draw what the colours of the grids mean, as markup."""
    kinds = {"header": "header", "data": "data", "total": "total", "note": "note", "unused": "beside"}
    boxes = "".join(
        f'<span><i class="k-{css_kind}"></i> {escape(phrases(f"page.legend.{name}"))}</span>'
        for name, css_kind in kinds.items()
    )
    marks = "".join(
        f'<span><i class="hit {severity}">3</i> {escape(phrases(f"page.legend.{severity}"))}</span>'
        for severity in ("error", "warning")
    )
    return f'<p class="legend">{escape(phrases("page.legend"))} {boxes}{marks}</p>'


def grids(
    artifact: Mapping[str, Any],
    *,
    link: str = "",
    most: int = 12,
    phrases: Catalogue | None = None,
    reasons: bool = True,
) -> str:
    """Draw the first sheets as grids, as markup.

    `link`: where the count of a column's findings leads, with the column and the severity added to it; `most`: how many
    sheets. `reasons`: with the artifact's own words, which are English, why a sheet or a table was not used.
    """
    phrases = phrases or catalogue(ENGLISH)
    drawn = []
    for sheet in artifact["sheets"][:most]:
        if sheet.get("skipped"):
            why = f" ({escape(str(sheet['skipped']))})" if reasons else ""
            drawn.append(f"<p>{_caption_text(sheet, phrases)}: {escape(phrases('page.not_read'))}{why}</p>")
        elif not sheet["tables"]:
            drawn.append(f"<p>{_caption_text(sheet, phrases)}: {escape(phrases('page.no_table'))}</p>")
        else:
            drawn.append(_SheetGrid(artifact, sheet, link, phrases).draw())
            for table in sheet["tables"]:
                if table.get("skipped"):
                    why = f" ({escape(str(table['skipped']))})" if reasons else ""
                    drawn.append(f'<p class="soft">{escape(phrases("page.unused", range=table["range"]))}{why}</p>')
    more = len(artifact["sheets"]) - most
    body, note = bounded(drawn, phrases)
    return body + note + (f"<p>{escape(phrases('page.sheets.more', count=more))}</p>" if more > 0 else "")


def columns(
    artifact: Mapping[str, Any],
    most: int = 400,
    *,
    phrases: Catalogue | None = None,
    reasons: bool = True,
    doubtful: bool = False,
) -> str:
    """Draw a table of which column became which field, how surely, and what else it could have been, as markup.

    `reasons`: also what speaks for it, in the matcher's own words, which are English. `doubtful`: only those in doubt;
    empty if there are none.
    """
    phrases = phrases or catalogue(ENGLISH)
    mapping = [column for column in artifact["mapping"] if not doubtful or is_doubtful(column)]
    if not mapping:
        return "" if doubtful else f"<p>{escape(phrases('page.columns.none'))}</p>"
    many = len({m["table"] for m in mapping}) > 1
    body, note = bounded((_draw_column(m, phrases, many=many, reasons=reasons) for m in mapping[:most]), phrases)
    more = len(mapping) - most
    left = f"<p>{escape(phrases('page.columns.more', count=more))}</p>" if more > 0 else ""
    names = ("column", "header", "became", "sure", "why" if reasons else "other")
    head = "".join(f'<th scope="col">{escape(phrases(f"page.head.{name}"))}</th>' for name in names)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(phrases("page.columns"))}">'
        f'<table class="columns"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}{left}'
    )


def is_doubtful(column: Mapping[str, Any]) -> bool:
    """Whether a person had better check what a column became."""
    if column["target"]:
        return share(column) < _SURE_SHARE
    return any(share(runner_up) >= _LIKELY_SHARE for runner_up in column["runners_up"][:1])


def _draw_column(mapped: Mapping[str, Any], phrases: Catalogue, *, many: bool, reasons: bool) -> str:
    """Draw a column as a row of the table of columns; `many`: there are several tables, so it names its own."""
    table = f'<br><span class="soft">{escape(str(mapped["table"]).rpartition("!")[2])}</span>' if many else ""
    header = (
        escape(str(mapped["header"]))
        if mapped["header"]
        else f'<span class="soft">{escape(phrases("page.not_shown"))}</span>'
    )
    unused = f'<span class="soft">{escape(phrases("page.no_field"))}</span>'
    target = f"<b>{escape(str(mapped['target']))}</b>" if mapped["target"] else unused
    sure = bar(share(mapped), phrases) if mapped["target"] else ""
    others = ", ".join(
        f"{escape(str(other['field']))} {phrases.percent(share(other))}" for other in mapped["runners_up"][:3]
    )
    return (
        f"<tr><td>{escape(str(mapped['column']))}{table}</td><td>{header}</td><td>{target}</td><td>{sure}</td>"
        f'<td class="small">{_draw_why(mapped) if reasons else others}</td></tr>'
    )


# What speaks for a field, and against it, by the rule's name without what follows its colon.
_REASONS: Final = {
    "header": ("header is like it", "header does not name it"),
    "header:": ("header is its {}", "header is not its {}"),
    "header~": ("header is like its {}", "header is unlike its {}"),
    "meaning": ("header means the same", "header means something else"),
    "other meaning": ("header means nothing else", "header means something else"),
    "other role": ("header names the same person or party", "header names another person or party"),
    "contradiction": ("header does not contradict it", "header states another unit, currency or number"),
    "description": ("header has the words of its description", "header lacks the words of its description"),
    "near": ("header or values share rare words with it", "header and values share no rare words with it"),
    "many fields": ("one of few fields", "one of many fields, and the header does not name it"),
    "type": ("values are of type {}", "values are not of type {}"),
    "values": ("values look like {}", "values do not look like {}"),
    "pattern": ("values match the pattern", "values do not match the pattern"),
    "allowed": ("values are allowed", "values are not allowed"),
    "neighbours": ("fits the columns next to it", "does not fit the columns next to it"),
    "memory:header": ("learnt from earlier files", "learnt otherwise from earlier files"),
    "memory:other field": ("not learnt for another field", "learnt for another field"),
    "memory:person": ("a person words so", "a person words otherwise"),
    "memory:like": ("like a header that was learnt", "unlike the headers that were learnt"),
    "memory:letters": ("spelt like headers that were learnt", "spelt unlike headers that were learnt"),
    "memory:spellings": ("values are learnt spellings", "values are not learnt spellings"),
    "memory:shape": ("its place in the table was confirmed", "another field was confirmed at its place in the table"),
    "decision": ("a person decided it", "a person decided otherwise"),
    "hooks.after_mapping": ("a hook of the config decided it", "a hook of the config decided otherwise"),
}


def in_words(rule: str, weight: object = None) -> str:
    """Explain in English what a rule of the matcher says for a field or, with a weight below 0, against it.

    Empty where it is the same for every column; the rule itself where it has no words.
    """
    if rule == "prior":
        return ""
    key, about = _reason_key(rule)
    for_and_against = _REASONS.get(key)
    if for_and_against is None:
        return rule
    return for_and_against[_is_against(weight)].format(about.replace("/", " or ").replace("_", " "))


def _reason_key(rule: str) -> tuple[str, str]:
    """Split a rule into its key in `_REASONS` and what it is about: `header:label~` is `header~` about `label`."""
    name, _, rest = rule.partition(":")
    if name == "memory":
        return ("memory:like" if rest.startswith("like") else f"memory:{rest.partition(' “')[0]}"), ""
    if name == "header" and rest:
        return ("header~", rest[:-1]) if rest.endswith("~") else ("header:", rest)
    return name, rest


def _is_against(weight: object) -> bool:
    """Whether the weight of a rule speaks against the field."""
    return isinstance(weight, int | float) and weight < 0


def reason(rule: str, weight: object = None) -> str:
    """Draw `in_words` as markup, with the rule and its weight as a title; empty where there is nothing to say."""
    text = in_words(rule, weight)
    if not text:
        return ""
    about = f"{rule} {weight:+.2f}" if isinstance(weight, int | float) else rule
    return (
        f'<span class="reason{" against" if _is_against(weight) else ""}" title="{escape(about)}">{escape(text)}</span>'
    )


def _draw_reasons(contributors: Sequence[Mapping[str, Any]]) -> str:
    """Draw what the first contributors to a probability say, as markup. Artifacts of earlier versions have a delta."""
    return "".join(
        reason(str(part["rule"]), float(part.get("weight", part.get("delta")) or 0))
        for part in contributors[:_MOST_CONTRIBUTORS]
    )


def _draw_why(mapped: Mapping[str, Any]) -> str:
    """Draw what speaks for a column's field, and what else it may be, as markup."""
    note = f"<div>{escape(str(mapped['note']))}</div>" if mapped["note"] else ""
    others = "".join(
        f"<li>{escape(str(other['field']))} {bar(share(other))} {_draw_reasons(other.get('contributors') or [])}</li>"
        for other in mapped["runners_up"][:5]
    )
    folded = f"<details><summary>could also be</summary><ul>{others}</ul></details>" if others else ""
    return f"{_draw_reasons(mapped['contributors'])}{note}{folded}"


def readings(artifact: Mapping[str, Any], most: int = 200, *, phrases: Catalogue | None = None) -> str:
    """Draw the choices between two readings of the same text as a table, guesses first; empty if there are none."""
    phrases = phrases or catalogue(ENGLISH)
    choices = sorted(artifact["readings"], key=lambda choice: bool(choice["sure"]))
    if not choices:
        return ""
    guess = f"<b class=warning-text>{escape(phrases('page.guess'))}</b>"
    rows = "".join(
        f"<tr><td>{escape(_translate_term('reading', choice['kind'], phrases))}</td>"
        f"<td>{escape(_translate_term('chosen', choice['chosen'], phrases))}</td>"
        f"<td>{escape(where(choice, phrases))}</td>"
        f"<td>{escape(phrases('page.sure')) if choice['sure'] else guess}</td>"
        f"<td>{draw_setting(choice.get('settle'), phrases)}</td></tr>"
        for choice in choices[:most]
    )
    names = ("reading", "chosen", "place", "sure", "settle")
    head = "".join(f'<th scope="col">{escape(phrases(f"page.head.{name}"))}</th>' for name in names)
    more = len(choices) - most
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(phrases("page.readings"))}"><table><thead>'
        f"<tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        + (f"<p>{escape(phrases('page.kinds.more', count=more))}</p>" if more > 0 else "")
    )


def draw_setting(remedy: object, phrases: Catalogue) -> str:
    """Draw what settles a reading, as markup: lines of a manifest with the words around them in the catalogue's
    language, anything else as it is. Empty without."""
    setting = _SETTING.fullmatch(str(remedy or ""))
    if setting is None:
        return f"<code>{escape(str(remedy))}</code>" if remedy else ""
    line, alternative_value, alternative_line, field = setting.groups()
    alternative = alternative_value or alternative_line
    text = phrases("page.setting.or", first=line, second=alternative) if alternative else line
    text = phrases("page.setting.field", setting=text, field=field) if field else text
    return f"<code>{escape(text)}</code>"


def _translate_term(group: str, text: object, phrases: Catalogue) -> str:
    """Return a word of the engine's as the catalogue has it; else with spaces for underscores, which names of encodings
    and fields have."""
    key = f"{group}.{_SEPARATORS.sub('_', str(text))}"
    return phrases(key) if key in phrases else str(text).replace("_", " ")


def where(place: Mapping[str, Any], phrases: Catalogue) -> str:
    """Write where a finding or a reading is, in words with dots between them: file, sheet, column or field, row."""
    column, header = str(place.get("column") or ""), str(place.get("header") or "")
    parts = [
        phrases("page.file", name=place["input"]) if place.get("input") else "",
        phrases("page.sheet", name=place["sheet"]) if place.get("sheet") else "",
        phrases("page.column.named", letters=column, header=header) if column and header else "",
        phrases("page.column", letters=column) if column and not header else "",
        phrases("page.field", name=place["field"]) if place.get("field") and not column else "",
        phrases("page.row", row=place["row"]) if place.get("row") else "",
    ]
    return " · ".join(part for part in parts if part)


def drift(artifact: Mapping[str, Any], *, phrases: Catalogue | None = None) -> str:
    """Draw how this drop differs from the sender's last one, as a list; empty where nothing is known."""
    phrases = phrases or catalogue(ENGLISH)
    differences = artifact.get("drift")
    if not isinstance(differences, Mapping):
        return ""
    lines = [*_column_changes(differences.get("columns") or {}, phrases), *_value_changes(differences, phrases)]
    rows = differences.get("rows") or {}
    if rows.get("out_of_range"):
        lines.append(phrases("drift.rows", now=rows.get("now"), before=rows.get("before")))
    if not lines:
        return f"<p>{escape(phrases('drift.none'))}</p>"
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _column_changes(changes: Mapping[str, Any], phrases: Catalogue) -> Iterable[str]:
    """Yield a sentence for each column that is new, gone or changed."""
    for kind in ("new", "gone", "renamed", "moved", "remapped"):
        for change in (changes.get(kind) or ())[:_MOST_CHANGES]:
            before, now = str(change.get("from")), str(change.get("to"))
            yield phrases(f"drift.{kind}", header=change.get("header", ""), before=before, now=now)


def _value_changes(differences: Mapping[str, Any], phrases: Catalogue) -> Iterable[str]:
    """Yield a sentence for each column whose values changed in a way that has one."""
    for change in (differences.get("values") or ())[:_MOST_CHANGES]:
        before, now = (_share_or_list(change.get(name), phrases) for name in ("before", "now"))
        if f"drift.{change.get('what')}" in phrases:
            yield phrases(f"drift.{change['what']}", header=change.get("header", ""), before=before, now=now)


def _share_or_list(value: object, phrases: Catalogue) -> str:
    """Write a share as percent, a list of types with commas."""
    if isinstance(value, int | float):
        return phrases.percent(value)
    return ", ".join(_translate_term("type", one, phrases) for one in value) if isinstance(value, list) else str(value)
