"""Sets of constraints: kept in files that can be versioned, checked against history, searched for gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from nearly.engine.history import Check, ColumnLimits, example, frame_of, measure, schema_of, time_zone
from nearly.errors import SchemaError
from nearly.missing.statements.bound_set import BoundConstraint, BoundSet, bind_constraints
from nearly.missing.statements.constraint import Constraint, read_constraints, write_constraints
from nearly.plan.values.regions import RowSpace


@dataclass(frozen=True, slots=True)
class ConstraintSet(Sequence[Constraint]):
    """Constraints that hold together. Law: a missing row satisfies the predicate of at least one of them."""

    constraints: tuple[Constraint, ...] = ()

    @classmethod
    def of(cls, given: Any) -> ConstraintSet:
        """Constraints from whatever the user has: a set, one constraint, several, a file, or none."""
        match given:
            case None:
                return cls()
            case ConstraintSet():
                return given
            case Constraint():
                return cls((given,))
            case str() | PathLike():
                return cls.load(given)
            case Iterable() if not isinstance(given, Mapping):
                return cls(_members(given))
        raise SchemaError(f"constraints are a list of nearly.Constraint or the path of a file, not {type(given).__name__}")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ConstraintSet:
        """Read a YAML or JSON file."""
        return cls(read_constraints(Path(path)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a YAML or JSON file, by the ending of its name."""
        write_constraints(Path(path), self.constraints)

    def check(self, history: Any) -> list[Violation]:
        """Test the constraints on rows of the past, with Spark: a Spark DataFrame, an Arrow table or a path to files.

        The rows are taken as an instance of the missing rows; every violation is listed, with an example row.
        """
        frame = frame_of(history)
        return check(frame, self.bound_to(RowSpace.of(schema_of(frame, "history"), time_zone(frame))))

    def bound_to(self, rows: RowSpace) -> BoundSet:
        return bind_constraints(self.constraints, rows)

    def __getitem__(self, index: Any) -> Any:
        return self.constraints[index]

    def __len__(self) -> int:
        return len(self.constraints)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)


def _members(given: Iterable[Any]) -> tuple[Constraint, ...]:
    members = tuple(given)
    for place, member in enumerate(members):
        if not isinstance(member, Constraint):
            raise SchemaError(f"constraint {place + 1} is {member!r}; build it with nearly.Constraint(predicate, ...)")
    return members


@dataclass(frozen=True, slots=True)
class Violation:
    """A constraint that the history breaks (None: rows that no constraint covers), and how.

    `kind` is `rows` (their number is out of bounds), `values` (some are out of their ranges) or `closure`.
    """

    constraint: Constraint | None
    kind: str
    found: int
    example: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        what = {
            "rows": f"{self.found} rows, outside {None if self.constraint is None else self.constraint.rows}",
            "values": f"{self.found} rows with values out of range, for example {self.example}",
            "closure": f"{self.found} rows that no constraint covers, for example {self.example}",
        }[self.kind]
        return what if self.constraint is None else f"{self.constraint.label}: {what}"


def check(frame: Any, bound: BoundSet) -> list[Violation]:
    """All violations of the constraints by the rows of a Spark frame, counted by Spark."""
    checks = [_check(each) for each in bound.constraints]
    measured = measure(frame, checks)
    found = []
    for constraint, test, counts in zip(bound.constraints, checks, measured.counts, strict=True):
        if counts.matching < constraint.low or (constraint.high is not None and counts.matching > constraint.high):
            found.append(Violation(constraint.given, "rows", counts.matching))
        if counts.violating:
            found.append(Violation(constraint.given, "values", counts.violating, example(frame, test)))
    if measured.uncovered:
        found.append(Violation(None, "closure", measured.uncovered, example(frame, None, checks)))
    return found


def _check(constraint: BoundConstraint) -> Check:
    """The constraint in the terms of the engine: its predicate as SQL, its ranges as limits on columns."""
    ranges = constraint.given.values.items()
    return Check(constraint.given.predicate, tuple(ColumnLimits(name, each.low, each.high, each.nullable) for name, each in ranges))
