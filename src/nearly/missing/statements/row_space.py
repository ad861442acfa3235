"""The possible rows of a table: one ordered domain for each column that constraints and queries can speak about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nearly.algebra.boxes import Space
from nearly.errors import SchemaError, Unsupported, unknown
from nearly.missing.statements.domains import OrderedDomain, domain_of
from nearly.plan.schema import TableSchema


@dataclass(frozen=True, slots=True)
class RowSpace:
    """The domains of a table's columns; a column of another type has none. `zone` is the session's time zone."""

    table: str
    schema: TableSchema
    domains: Mapping[str, OrderedDomain]
    everything: Space
    zone: str

    @classmethod
    def of(cls, schema: TableSchema, zone: str) -> RowSpace:
        domains = {}
        for column in schema.columns:
            try:
                domains[column.name] = domain_of(column.type, zone, column.name)
            except Unsupported:
                continue
        return cls(schema.name, schema, domains, {name: domain.everything for name, domain in domains.items()}, zone)

    def column(self, name: str) -> str:
        """The column of that name, compared without case."""
        found = [each.name for each in self.schema.columns if each.name.lower() == name.lower()]
        if not found:
            raise unknown("column", name, (each.name for each in self.schema.columns))
        if len(found) > 1 and name not in found:
            raise SchemaError(f"column {name!r} of table {self.table!r} is ambiguous: {', '.join(found)}")
        chosen = name if name in found else found[0]
        if chosen not in self.domains:
            domain_of(next(each.type for each in self.schema.columns if each.name == chosen), self.zone, chosen)
        return chosen
