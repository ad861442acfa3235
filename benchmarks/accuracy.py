"""How far an early answer is from the exact one: relative error of its numbers, and which rows it has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearly import Answer

ROUNDING = 1e-6
"""Estimates are shown in the type of the exact value, so they may differ from it in the last digit although they are right."""

Row = tuple[object, ...]
Rows = dict[Row, list[np.ndarray]]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """`error` is the mean absolute percentage error over the numbers of rows that both answers have, as WAKE measures it.

    `recall` is the share of the exact rows that are there; `strict` is the mean in which the numbers of a missing or superfluous
    row count as wholly wrong. `worst` is the largest relative error of a number that both have, beside the larger of the two;
    `missing` is the share of the exact rows that are not there, `superfluous` that of the rows that are there in vain.
    """

    error: float
    recall: float
    strict: float
    worst: float
    missing: float
    superfluous: float

    @property
    def whole(self) -> float:
        """The error of the answer as a whole: of its worst number, or the share of rows that should or should not be there."""
        return max(self.worst, self.missing, self.superfluous)

    def belies(self, told: float) -> bool:
        """Whether the error that an answer tells is finite and less than its true one."""
        return math.isfinite(told) and self.whole > told + ROUNDING


def accuracy(answer: Answer, exact: pa.Table) -> Accuracy:
    """Rows are matched by all columns but the numbers that evolve; several with the same values in the order of these numbers."""
    evolving = set(answer.stats.get("evolving", ()))
    numbers = [place for place in sorted(evolving) if _is_number(exact.column(place).type)]
    keys = [place for place in range(exact.num_columns) if place not in numbers]
    early, late = _rows(answer.table, keys, numbers), _rows(exact, keys, numbers)
    pairs = [pair for key in late.keys() & early.keys() for pair in zip(early[key], late[key], strict=False)]
    missing, superfluous = exact.num_rows - len(pairs), answer.table.num_rows - len(pairs)
    found, true = _matrix([pair[0] for pair in pairs], len(numbers)), _matrix([pair[1] for pair in pairs], len(numbers))
    relative = _relative(found, true, np.abs(true))
    largest = _relative(found, true, np.maximum(np.abs(found), np.abs(true)))
    wrong, width = missing + superfluous, max(len(numbers), 1)
    recall = len(pairs) / exact.num_rows if exact.num_rows else 1.0
    return Accuracy(
        error=float(relative.mean()) if relative.size else (0.0 if recall else 1.0),
        recall=recall,
        strict=(float(relative.sum()) + wrong * width) / max(len(pairs) * width + wrong * width, 1),
        worst=float(largest.max(initial=0.0)),
        missing=missing / max(exact.num_rows, 1),
        superfluous=superfluous / max(answer.table.num_rows, 1),
    )


def _rows(table: pa.Table, keys: Sequence[int], numbers: Sequence[int]) -> Rows:
    names = [_comparable(table.column(place)) for place in keys]
    values = [np.asarray(table.column(place).cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float) for place in numbers]
    found: Rows = {}
    for row in range(table.num_rows):
        found.setdefault(tuple(column[row] for column in names), []).append(np.array([value[row] for value in values]))
    for several in found.values():
        several.sort(key=lambda row: [(math.isnan(value), value) for value in row])
    return found


def _comparable(column: pa.ChunkedArray) -> list[object]:
    """Values that are equal where both answers mean the same: doubles to nine digits."""
    values = column.to_pylist()
    return [float(f"{value:.9g}") for value in values] if pa.types.is_floating(column.type) and not column.null_count else values


def _matrix(rows: Sequence[np.ndarray], width: int) -> np.ndarray:
    return np.stack(rows) if rows else np.zeros((0, width))


def _relative(found: np.ndarray, exact: np.ndarray, size: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(found - exact) / size
    both = (found == exact) | (np.isnan(found) & np.isnan(exact))
    return np.where(both, 0.0, np.where(np.isfinite(error), error, 1.0))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
