"""How answers are asked for and shown on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nearly.cli.formats import MODES
from nearly.display.lines import SHOWN_ROWS
from nearly.errors import SchemaError, unknown


@dataclass(slots=True)
class ShellSettings:
    """What the options of `nearly sql` say, and what the commands of the shell change."""

    mode: str = "table"
    error: float | None = None
    seconds: float | None = None
    confidence: float = 0.95
    seed: int = 0
    rows: int = SHOWN_ROWS
    timer: bool = False

    def set_mode(self, mode: str) -> None:
        if mode not in MODES:
            raise unknown("mode", mode, MODES)
        self.mode = mode


def share(text: str, option: str) -> float:
    """A share of one, written as such or in per cent.

    >>> share("5 %", "--within"), share("0.05", "--within")
    (0.05, 0.05)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    value = None if match is None else float(match.group(1)) / (100 if match.group(2) else 1)
    if value is None or not 0 < value < 1:
        raise SchemaError(f"{option} {text!r} is no share between 0 and 1; write for example 1% or 0.01")
    return value
