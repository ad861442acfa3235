"""The texts of the queries, each in its own file under `queries/`, whose name is a number and what it asks."""

from __future__ import annotations

from pathlib import Path

DIRECTORY = Path(__file__).with_name("queries")
NAMES = {int(path.stem[:2]): path.stem for path in sorted(DIRECTORY.glob("*.sql"))}
NUMBERS = tuple(NAMES)


def query(number: int) -> str:
    """The text of a query; it is valid in Spark SQL and in DuckDB, and its ORDER BY leaves open only what LIMIT does not ask."""
    return DIRECTORY.joinpath(f"{NAMES[number]}.sql").read_text()
