"""Run a case and judge what came out."""

import traceback
from collections.abc import Callable
from pathlib import Path

from tests.truth.cases import Case
from tests.truth.judge import Difference, Verdict, judge
from tests.truth.running import Outcome, run_case
from tests.truth.strangers.judging import Stranger
from tests.truth.strangers.judging import judge as judge_stranger


def check(case: Case, folder: Path, run: Callable[[Case, Path], Outcome] = run_case) -> Verdict:
    try:
        outcome = run(case, folder)
    except Exception as error:  # noqa: BLE001 - whatever breaks here is a finding of the suite
        last = traceback.extract_tb(error.__traceback__)[-1]
        broken = Difference(
            "wrong", "run broke", "job", "an output", f"{type(error).__name__}: {error} ({last.name})"[:300]
        )
        return Verdict(differences=[broken])
    return (judge_stranger if isinstance(case, Stranger) else judge)(case, outcome)
