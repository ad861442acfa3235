"""Thousands of mutated texts: what nearly answers, Spark answers alike; a mistake that nearly tells, Spark refuses, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nearly
from nearly.errors import NearlyError, SchemaError, UnknownName
from tests.fixtures import tables
from tests.fixtures.agreement import difference
from tests.fixtures.attacks import attacks, mutations
from tests.fixtures.queries import corpus
from tests.fixtures.quick_spark import quick_session

COUNT = 5000
LENIENT = ("INVALID_IDENTIFIER", "/*+")
"""What nearly takes and Spark does not: letters of any script in a name without quotes, and whatever stands in a hint."""


def disagreement(text: str, db: nearly.Session, oracle: Any) -> str | None:
    try:
        found = db.sql(text).exact().table
    except (SchemaError, UnknownName) as mistake:
        found = mistake
    except NearlyError:
        return None
    except Exception as trouble:  # noqa: BLE001  all are to be told
        return f"{text!r} ends with {type(trouble).__name__}: {trouble}"
    try:
        expected = oracle.sql(text).toArrow()
    except Exception as trouble:  # noqa: BLE001  whatever Spark raises is its answer
        said = f"{text!r} is answered, Spark says {str(trouble)[:200]}"
        return None if isinstance(found, NearlyError) or any(each in said for each in LENIENT) else said
    if isinstance(found, NearlyError):
        return f"{text!r} is refused ({found}), Spark answers"
    try:
        wrong = difference(expected, found, text)
    except Exception:  # noqa: BLE001  the comparison reads the text by another parser, for the order only
        wrong = None if expected.num_rows == found.num_rows else "other rows"
    return None if wrong is None else f"{text!r}: {wrong}"


@pytest.mark.long
def test_mutated_texts_agree_with_spark(spark: Any, tmp_path: Path) -> None:
    quick = quick_session(spark)
    files = tables.write(tmp_path / "data")
    for name, path in files.items():
        quick.read.parquet(str(path)).createOrReplaceTempView(name)
    with nearly.connect(quick, path=tmp_path / "catalog") as db:
        for name, path in files.items():
            db.register(name, str(path))
        texts = mutations([case.text for case in corpus()], COUNT, seed=5)
        wrong = [each for each in (disagreement(text, db, quick) for text in texts) if each is not None]
    assert not wrong, f"{len(wrong)} of {COUNT}:\n" + "\n".join(wrong[:100])


@pytest.mark.long
def test_attacks_give_no_secret(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARLY_SECRET", "TOPSECRET")
    secret = tmp_path / "secret.txt"
    secret.write_text("TOPSECRET\n")
    with nearly.connect(quick_session(spark), path=tmp_path / "catalog") as db:
        for name, path in tables.write(tmp_path / "data").items():
            db.register(name, str(path))
        for text in attacks(str(secret)):
            try:
                answer = db.sql(text).exact()
            except NearlyError:
                continue
            assert "TOPSECRET" not in str(answer.table.to_pylist()), text
