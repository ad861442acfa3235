"""The options that benchmarks have in common."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path


def parsed(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, data: Path, tiny: Mapping[str, object]
) -> argparse.Namespace:
    """A benchmark's own options and those of all: where its tables are, where its report goes, `tiny`, which replaces others."""
    parser.add_argument("--tiny", action="store_true", help="hardly any data, to see that all works")
    parser.add_argument("--data", type=Path, default=data, help=f"where the tables are, or are generated (default {data.name})")
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options = parser.parse_args(arguments)
    if options.tiny:
        vars(options).update(tiny)
    return options
