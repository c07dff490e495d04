"""A few files of each of the strangers' families: nothing differs in silence, plain files do not warn.

Thousands more by hand: python -m tests.truth --strangers --files 3000 --seed 1000
"""

import pytest

from tests.truth.cases import FAMILIES
from tests.truth.checking import check
from tests.truth.strangers import every

FILES = 3
# Families that are still silent, that are plain and warn, or that are told where they should be right: to be emptied.
KNOWN_SILENT = frozenset(
    {
        "s_abbreviations_below",
        "s_all_beside_its_parts",
        "s_allowed_values_sheet",
        "s_balance_lines_in_statement",
        "s_carried_forward",
        "s_chart_of_accounts_sums",
        "s_club_teams_stacked",
        "s_columns_moved_copy",
        "s_comment_lines",
        "s_copied_sheet_with_old_data",
        "s_debit_credit_columns",
        "s_declared_field_without_column",
        "s_empty_and_header_only",
        "s_example_sheet",
        "s_grand_total_on_top",
        "s_invoice_footer",
        "s_lab_replicate_means",
        "s_long_names_at_the_end",
        "s_months_and_year_sheet",
        "s_of_which_rows",
        "s_one_of_two_numbers",
        "s_one_of_two_texts",
        "s_opposite_flags",
        "s_other_units",
        "s_percent_row_under_total",
        "s_school_class_sheets_and_teacher",
        "s_signature_lines",
        "s_small_table_below",
        "s_sorted_copy_sheet",
        "s_star_totals",
        "s_statistics_rows_below",
        "s_subtotals_above_groups",
        "s_summary_sheet_by_group",
        "s_texts_with_points",
        "s_the_other_party",
        "s_todo_sentences_at_the_end",
        "s_top_ten_sheet",
        "s_total_under_dates",
        "s_total_without_word",
        "s_town_election_shares",
        "s_town_year_in_caption_columns",
        "s_trial_balance_difference",
    }
)
KNOWN_NOISY = frozenset(
    {
        "s_person_called_sum",
        "s_supplier_called_total",
        "s_survey_one_word_answers",
    }
)
KNOWN_TOLD = frozenset(
    {
        "s_all_beside_its_parts",
        "s_allowed_values_sheet",
        "s_caption_dates_over_rows",
        "s_columns_moved_copy",
        "s_comment_lines",
        "s_continued_on_next_page",
        "s_copied_sheet_with_old_data",
        "s_example_sheet",
        "s_formula_total_row",
        "s_grand_total_on_top",
        "s_invoice_footer",
        "s_months_and_year_sheet",
        "s_percent_row_under_total",
        "s_second_bank_details_below",
        "s_second_extra_header_names",
        "s_second_fixed_columns",
        "s_second_instructions_below_the_header",
        "s_second_last_year_below_the_total",
        "s_second_machine_names_below_labels",
        "s_second_name_cell_says_more",
        "s_second_phases_as_rows_of_words",
        "s_second_row_names_of_r",
        "s_second_running_total_sheet",
        "s_second_soll_and_haben",
        "s_second_trailer_record",
        "s_second_waiting_list_below",
        "s_second_year_by_format",
        "s_shop_category_captions",
        "s_small_table_below",
        "s_sorted_copy_sheet",
        "s_statistics_rows_below",
        "s_subtotals_above_groups",
        "s_summary_sheet_by_group",
        "s_texts_with_points",
        "s_top_ten_sheet",
        "s_total_under_dates",
        "s_total_without_word",
        "s_trial_balance_difference",
        "s_year_row_under_months",
    }
)

assert every


@pytest.mark.parametrize("name", [f.name for f in FAMILIES.values() if f.stranger])
def test_a_strangers_file_is_right_or_told(name, tmp_path):
    family = FAMILIES[name]
    verdicts = []
    for seed in range(FILES):
        case = family.case(seed)
        verdict = check(case, tmp_path)
        verdicts.append(verdict)
        again = f"python -m tests.truth --family {name} --seed {seed} --files 1 --keep DIR"
        if verdict.silent and name in KNOWN_SILENT:
            pytest.xfail("a known silent difference")
        assert not verdict.silent, f"{case.title} ({case.note}): {verdict.silent[:3]}; again: {again}"
        if family.plain and verdict.warnings and name in KNOWN_NOISY:
            pytest.xfail("a known false alarm")
        if family.plain:
            assert not verdict.warnings, (
                f"{case.title} ({case.note}) is plain, but warns {dict(verdict.warnings)}; again: {again}"
            )
    if family.plain or family.mostly_right:
        right = sum(v.word == "right" for v in verdicts)
        if right * 2 < FILES and name in KNOWN_TOLD:
            pytest.xfail("known to be told where it should be right")
        assert right * 2 >= FILES, f"only {right} of {FILES} files are right, the others told: {verdicts[0].told}"


def test_the_lists_of_what_is_known_name_families():
    assert all(name in FAMILIES for name in KNOWN_SILENT | KNOWN_NOISY | KNOWN_TOLD)
