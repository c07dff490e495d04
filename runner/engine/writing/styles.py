"""The few styles of a normalized workbook."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Final

from runner.engine.writing.texts import attribute

HEADER: Final = 1
FORMATS: Final = {
    "text": "@",
    "email": "@",
    "phone": "@",
    "url": "@",
    "enum": "@",
    "integer": "0",
    "money": "#,##0.00",
    "percent": "0.00%",
    "date": "yyyy-mm-dd",
    "datetime": "yyyy-mm-dd hh:mm:ss",
    "time": "hh:mm:ss",
}
KIND_OF: Final[dict[str, type]] = {
    "integer": int,
    "decimal": float,
    "money": float,
    "percent": float,
    "date": date,
    "datetime": datetime,
    "time": time,
    "boolean": bool,
}
BUILT_IN: Final = {"0": 1, "0.00": 2, "#,##0": 3, "#,##0.00": 4, "0%": 9, "0.00%": 10, "@": 49}
_FIRST_OWN: Final = 164
DURATION: Final = "[h]:mm:ss"


class Styles:
    """Hands out style numbers for number formats."""

    def __init__(self, formats: Sequence[str] = ()) -> None:
        """`formats`: those that have their numbers already, in order."""
        self._formats = list(formats)
        self.by_kind = {
            date: self.of(FORMATS["date"]),
            datetime: self.of(FORMATS["datetime"]),
            time: self.of(FORMATS["time"]),
            timedelta: self.of(DURATION),
        }

    def of(self, number_format: str | None) -> int:
        """The style of a number format; 0, the default, for none."""
        if not number_format or number_format == "General":
            return 0
        if number_format not in self._formats:
            self._formats.append(number_format)
        return self._formats.index(number_format) + 2

    def xml(self) -> str:
        own = [f for f in self._formats if f not in BUILT_IN]
        number = {f: BUILT_IN.get(f) or _FIRST_OWN + own.index(f) for f in self._formats}
        formats = "".join(f'<numFmt numFmtId="{number[f]}" formatCode="{attribute(f)}"/>' for f in own)
        plain = '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
        header = (
            '<xf numFmtId="0" fontId="1" fillId="2" borderId="1" xfId="0" applyFont="1" applyFill="1" '
            'applyBorder="1" applyAlignment="1"><alignment vertical="center"/></xf>'
        )
        cells = "".join(
            f'<xf numFmtId="{number[f]}" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
            for f in self._formats
        )
        return (
            '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
            '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
            + (f'<numFmts count="{len(own)}">{formats}</numFmts>' if own else "")
            + '<fonts count="2"><font><sz val="11"/><name val="Calibri"/><family val="2"/></font>'
            '<font><b/><sz val="11"/><color rgb="FFFFFFFF"/><name val="Calibri"/><family val="2"/></font></fonts>'
            '<fills count="3"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/>'
            '</fill><fill><patternFill patternType="solid"><fgColor rgb="FF1F3864"/><bgColor indexed="64"/>'
            "</patternFill></fill></fills>"
            '<borders count="2"><border><left/><right/><top/><bottom/><diagonal/></border><border><left/><right/><top/>'
            '<bottom style="thin"><color rgb="FF8EA9DB"/></bottom><diagonal/></border></borders>'
            '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
            f'<cellXfs count="{len(self._formats) + 2}">{plain}{header}{cells}</cellXfs>'
            '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
        )
