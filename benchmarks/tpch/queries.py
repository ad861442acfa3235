"""The texts of the 22 queries, each in its own file under `queries/`."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

NUMBERS = tuple(range(1, 23))


def query(number: int, scale: str) -> str:
    """The text of a query; only Q11 depends on the scale factor, through its fraction 0.0001 / SF."""
    text = Path(__file__).with_name("queries").joinpath(f"q{number:02}.sql").read_text()
    return text.replace("{fraction}", f"{Decimal('0.0001') / Decimal(scale):f}")
