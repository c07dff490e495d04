"""How much a file may make the reader do before it is refused."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Every bound is counted while reading; a size that the file declares is only the first check."""

    max_file_bytes: int = 4096 * MIB
    max_entries: int = 20_000  # parts in a zip; a workbook with a thousand sheets and charts has about 5,000
    max_entry_bytes: int = 4096 * MIB  # one streamed part: a full sheet of 16 million cells is near 700 MiB
    max_part_bytes: int = 64 * MIB  # one part beside sheets and strings: workbook, styles, relations
    max_styles: int = 200_000  # Excel stops at 65,490
    max_strings: int = 20_000_000
    max_strings_held: int = 128 * MIB  # shared strings in memory, as UTF-8
    max_ratio: int = 250  # inflated / stored, where a part is over ratio_floor; XML of real sheets stays under 60
    ratio_floor: int = 32 * MIB
    max_rows: int = 1_048_576  # per sheet, as the formats say; text files have no such bound
    max_columns: int = 16_384
    max_cells: int = 200_000_000  # per sheet, the blanks left of a value counted
    max_sorted_cells: int = 5_000_000  # in sheets whose rows are out of order, which must be held to be sorted
    max_sheets: int = 2_000
    max_token_bytes: int = 4 * MIB  # one XML tag or text run
    max_depth: int = 200  # nested XML elements
    max_loaded_bytes: int = 96 * MIB  # a file that can only be read whole (xls)
    max_page_bytes: int = 48 * MIB  # a web page, which is held whole
    max_page_cells: int = 2_000_000
    max_page_tables: int = 2_000
    max_merged: int = 300_000  # merged areas beyond are not told
    layout_rows: int = 4_000  # rows whose cell styles are kept as hints
