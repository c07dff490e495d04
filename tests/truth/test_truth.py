"""A few files of each family, at fixed seeds: nothing differs in silence. ADE_TEST_FULL=1 takes two more of each.

Thousands more by hand: python -m tests.truth --files 3000 --seed 1000
"""

import pytest

from tests.support.effort import FULL
from tests.truth import families
from tests.truth.cases import FAMILIES
from tests.truth.checking import check
from tests.truth.running import try_case

FILES = 4 if FULL else 2
HEAVY = {
    "many_rows": 1,
    "formats_changed_late": 2,
    "encodings_cut_samples": 2,
    "many_columns": 2,
    "decimal_proved_late": 3,
    "dates_proved_late": 3,
}

assert families


@pytest.mark.parametrize("name", [f.name for f in FAMILIES.values() if not f.by_hand and not f.name.startswith("s_")])
def test_nothing_differs_in_silence(name, tmp_path):
    family = FAMILIES[name]
    files = HEAVY.get(name, FILES)
    said = []
    for seed in range(files):
        case = family.case(seed)
        verdict = check(case, tmp_path)
        said.append(verdict)
        again = f"python -m tests.truth --family {name} --seed {seed} --files 1 --keep DIR"
        assert not verdict.silent, f"{case.title} ({case.note}): {verdict.silent[:3]}; again: {again}"
        if family.plain:
            assert not verdict.warnings, f"{case.title} ({case.note}) is plain, but warns; again: {again}"
    if family.plain or family.mostly_right:
        right = sum(v.word == "right" for v in said)
        assert right * 2 >= files, f"only {right} of {files} files are right, the others told: {said[0].told}"


@pytest.mark.parametrize("name", ["plain_csv", "plain_book", "several_sheets", "number_locales"])
def test_the_command_at_the_desk_says_the_same(name, tmp_path):
    case = FAMILIES[name].case(0)
    verdict = check(case, tmp_path, try_case)
    assert (verdict.word, dict(verdict.warnings)) == ("right", {}), verdict.differences[:3]
