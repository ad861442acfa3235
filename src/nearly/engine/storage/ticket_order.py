"""Rows in files by their tickets, so that a sample lies in a few files, and the others are not read.

The tickets of some columns are cut into buckets of equal width, each in files of its own, in a directory that names it; in a bucket
rows are in order of their key. Rows that come later lie in files without a bucket, which hold any ticket. A sample by tickets below
a bound lies in the first buckets and in those files.
"""

from __future__ import annotations

from collections.abc import Sequence

from nearly.engine.storage.clustering import TICKETS as BY_TICKETS
from nearly.engine.storage.clustering import Clustering
from nearly.engine.storage.layouts import Layout
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.functions.tickets import TICKETS, ticket
from nearly.plan.types import LONG

BUCKET = "nearly_bucket_number"
"""The column that tells the bucket of a row on its way into files."""
BUCKETS = 40
"""A tenth of the tickets is four of them, and a quarter ten."""
FEWEST_ROWS = 400_000
"""Of fewer rows all are read soon; so many small files would cost more than they save."""


def by_tickets(columns: Sequence[str]) -> Clustering:
    """The arrangement of rows by tickets of some columns."""
    return Clustering(BY_TICKETS, tuple(columns), BUCKETS)


def bucket_of(columns: Sequence[Expression], buckets: int = BUCKETS) -> Expression:
    """The bucket of a row by what its ticket is drawn for."""
    return Call(LONG, "div", (ticket(columns), Literal(LONG, _width(buckets))))


def directory_of_bucket(bucket: int) -> str:
    """The name of the directory that holds the files of a bucket: none that Spark takes for a partition."""
    return f"nearly_tickets_{bucket:04d}"


def files_below(layout: Layout, columns: Sequence[str], bound: int) -> tuple[str, ...] | None:
    """The files that can hold rows whose ticket by some columns lies below a bound; None where that is not known."""
    order = layout.clustering
    if order is None or order.kind != BY_TICKETS or order.columns != tuple(columns) or order.buckets is None:
        return None
    last = (bound - 1) // _width(order.buckets)
    wanted = {part.path for block in layout.blocks if block.bucket is None or block.bucket <= last for part in block.parts}
    return tuple(path for path in layout.manifest.paths if path in wanted) or layout.manifest.paths[:1]


def _width(buckets: int) -> int:
    return -(-TICKETS // buckets)
