"""How far an early answer is from the exact one: relative error of its numbers, and which rows it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearly import Answer


@dataclass(frozen=True, slots=True)
class Accuracy:
    """`error` is the mean absolute percentage error over the numbers of rows that both answers have, as WAKE measures it.

    `recall` is the share of the exact rows that are there; `strict` counts the numbers of a missing or superfluous row as wholly
    wrong.
    """

    error: float
    recall: float
    strict: float


def accuracy(answer: Answer, exact: pa.Table) -> Accuracy:
    """Rows are matched by the columns that do not evolve; all columns do when the answer does not say."""
    evolving = set(answer.stats.get("evolving", ()))
    keys = [place for place in range(exact.num_columns) if place not in evolving]
    numbers = [place for place in sorted(evolving) if _is_number(exact.column(place).type)]
    early, late = _rows(answer.table, keys, numbers), _rows(exact, keys, numbers)
    errors = [_relative(early[key][0], late[key][0]) for key in late if key in early]
    cells = np.concatenate(errors) if errors else np.zeros(0)
    recall = sum(min(len(early.get(key, ())), len(rows)) for key, rows in late.items()) / max(exact.num_rows, 1)
    error = float(cells.mean()) if len(cells) else (0.0 if recall or not exact.num_rows else 1.0)
    wrong = len(early.keys() ^ late.keys())
    total = len(cells) + wrong * max(len(numbers), 1) if len(cells) or numbers else len(early.keys() | late.keys())
    strict = (float(cells.sum()) + wrong * max(len(numbers), 1)) / max(total, 1)
    return Accuracy(error, recall, strict)


def _rows(table: pa.Table, keys: list[int], numbers: list[int]) -> dict[tuple[object, ...], list[np.ndarray]]:
    names = [table.column(place).to_pylist() for place in keys]
    values = [np.asarray(table.column(place).cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float) for place in numbers]
    found: dict[tuple[object, ...], list[np.ndarray]] = {}
    for row in range(table.num_rows):
        key = tuple(column[row] for column in names)
        found.setdefault(key, []).append(np.array([value[row] for value in values]))
    return found


def _relative(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(found - exact) / np.abs(exact)
    both = (found == exact) | (np.isnan(found) & np.isnan(exact))
    return np.where(both, 0.0, np.where(np.isfinite(error), error, 1.0))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
