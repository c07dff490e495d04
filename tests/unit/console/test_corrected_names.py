"""How a file that is corrected in the browser is called: as the first one, beside it, in a name that a bucket takes."""

import pytest

from console.web.fixes import corrected_stem
from core.keys import MAX_NAME_BYTES, check_key


@pytest.mark.parametrize("letter", ["a", "é", "報", "🎈"])
@pytest.mark.parametrize("bytes_", [20, 251])
def test_a_long_name_in_any_script_fits(letter: str, bytes_: int):
    stem = letter * (bytes_ // len(letter.encode()))
    made = f"{corrected_stem(f'inbox/acme/a/{stem}.xlsx', '0123abcd')}.xlsx"
    folder, _, name = made.rpartition("/")
    assert folder == "inbox/acme/a"
    assert name.startswith(letter * 5)
    assert name.endswith("-corrected-0123abcd.xlsx")
    assert len(check_key(name).encode()) <= MAX_NAME_BYTES
