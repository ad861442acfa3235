"""Bad input gets an error of the documented kind and leaves the catalog as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nearly
from nearly import errors
from tests.fixtures import bad_input, tables
from tests.fixtures.bad_input import BadInput

DOCUMENT = Path(__file__).parents[1] / "docs" / "errors.md"


@pytest.fixture(scope="module")
def names(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the code of a case can name."""
    home = tmp_path_factory.mktemp("bad")
    files = tables.write(home / "data")
    closed = nearly.connect(spark, path=home / "closed")
    closed.close()
    with nearly.connect(spark, path=home / "tables") as db:
        for name, path in files.items():
            db.register(name, str(path))
        given = {"nearly": nearly, "db": db, "spark": spark, "closed": closed, "people": str(files["people"])}
        yield {**given, **bad_input.places(home / "places")}


@pytest.mark.parametrize("case", bad_input.CASES, ids=lambda case: case.code[:60])
def test_is_refused_in_kind(case: BadInput, names: dict[str, Any]) -> None:
    before = _state(names["db"])
    with pytest.raises(errors.NearlyError) as caught:
        eval(case.code, {}, names)
    assert type(caught.value).__name__ == case.kind, caught.value
    assert case.message in str(caught.value)
    assert len(str(caught.value)) < 2000, "a message is for reading"
    assert _state(names["db"]) == before


def _state(db: nearly.Session) -> dict[str, str]:
    """Every file of the catalog and what is in it; locks are empty."""
    root = db._engine.catalog.path
    found = {str(path.relative_to(root)): path.read_text(errors="replace") for path in sorted(root.rglob("*")) if path.is_file()}
    return {name: text for name, text in found.items() if text}


def test_there_are_enough() -> None:
    assert len(bad_input.CASES) >= 45
    assert {case.kind for case in bad_input.CASES} <= {each.__name__ for each in errors.NearlyError.__subclasses__()}


def test_document_is_in_step() -> None:
    """Regenerate it with `python -m tests.fixtures.bad_input > docs/errors.md`."""
    assert DOCUMENT.read_text(encoding="utf-8") == bad_input.document()
