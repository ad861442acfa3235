"""The tail over the rows of an answer's groups only gives these groups as they are in the whole."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nearly.rewrite.passes import for_units
from nearly.rewrite.stream.few_rows import ANSWER_KEYS, FEW_ROWS, few_rows
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, under
from tests.rewrite.running import by_units, rows_differ, run

NAME = "stream/few_rows"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_few_rows_give_the_same_answer(case: QueryCase) -> None:
    cut = for_units(shop.planned(case.text), shop.schema)
    assert cut is not None
    few = few_rows(cut.tail, cut.stages)
    if few is None:
        check(NAME, case, "None")
        return
    check(NAME, case, f"{under('rows', few.rows)}\n{under('tail', few.tail(cut.tail))}")
    state = by_units(cut)
    answer = run(cut.tail, state)
    keys = pa.table([answer.column(place) for place in few.places], [column.name for column in few.wanted.given])
    rows = run(few.rows, state | {ANSWER_KEYS: keys})
    assert rows.num_rows < state[few.stage.name].num_rows
    assert few.stages(cut.stages)[-1].name == FEW_ROWS
    assert rows_differ(answer, run(few.tail(cut.tail), {FEW_ROWS: rows}), case.text) is None
