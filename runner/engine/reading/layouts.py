"""A sheet's layout put together while its part is looked over."""

from runner.engine.reading.books import Area, Layout
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.styles import Look, Styles


class Marker:
    """Notes what stands out, within the limits."""

    def __init__(self, styles: Styles, limits: ReadLimits) -> None:
        self.layout = Layout()
        self._limits = limits
        self.marked = {index: look for index, look in enumerate(styles.looks) if not look.plain}

    def row(self, number: int, *, hidden: bool) -> None:
        if hidden and number <= self._limits.max_rows:
            self.layout.hidden_rows.add(number)
        self.layout.styled_rows = max(self.layout.styled_rows, min(number, self._limits.layout_rows))

    def mark(self, row: int, column: int, style: int) -> None:
        look = self.marked.get(style)
        if look is None or row > self._limits.layout_rows or column > self._limits.max_columns:
            return
        for name in Look.__slots__:
            if getattr(look, name):
                getattr(self.layout, name).setdefault(row, set()).add(column)

    def merge(self, area: Area) -> None:
        if len(self.layout.merged) < self._limits.max_merged:  # a hint, and worth no more memory
            self.layout.merged.append(area)

    def hide_columns(self, first: int, last: int) -> None:
        self.layout.hidden_columns.update(range(max(first, 1), min(last, self._limits.max_columns) + 1))
