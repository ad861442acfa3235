"""A view as its user holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearly.algebra.moments import check_confidence
from nearly.answer import Answer
from nearly.engine.storage.layouts import Table
from nearly.printing.html import card
from nearly.progress_bar import ProgressBar
from nearly.views.batch_sizes import smallest_batch
from nearly.views.sampling.outliers import DEFAULT_SIZE, OutlierIndex
from nearly.views.staleness import staleness
from nearly.views.states import Refresh, State

if TYPE_CHECKING:
    from nearly.views.catalogue import Views


class View:
    """A query whose rows are kept."""

    def __init__(self, views: Views, name: str) -> None:
        self._views = views
        self._name = name

    def __repr__(self) -> str:
        return f"View({self.name!r})"

    def _repr_html_(self) -> str:
        stale = ", ".join(f"{table}: {count:,} changed rows" for table, count in self.stale.items() if count) or "no"
        return card(
            f"View {self.name}", {"rows": f"{self.table.rows:,}", "stale": stale, "policy": self.policy, "query": self.text}
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def text(self) -> str:
        """The query, as it was read."""
        return self._views.definition(self._name).text

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that users see."""
        return self.table.shown

    @property
    def policy(self) -> str:
        return self._views.definition(self._name).policy

    @property
    def table(self) -> Table:
        """The stored table: columns that nobody selects included."""
        return self._views.stored(self._name)

    @property
    def state(self) -> State:
        """Which versions of its tables the view is of, and what its refreshes took."""
        return self._views.state(self._name)

    @property
    def versions(self) -> dict[str, int]:
        """The versions of the tables that the view's rows are of."""
        return {name: at.version for name, at in self.state.leaves.items()}

    @property
    def stale(self) -> dict[str, int]:
        """How many rows changed since in each table, of those that changed; empty where the view is fresh."""
        return staleness(self._views.engine, self._name, self.state)

    @property
    def history(self) -> list[Refresh]:
        """What the last refreshes did and took, the newest first; the last one is the making of the view."""
        return list(reversed(self.state.refreshes))

    @property
    def every(self) -> float | None:
        """Seconds between two refreshes in the background of open sessions; None where there are none."""
        return self._views.definition(self._name).every

    @property
    def trouble(self) -> str | None:
        """What went wrong with the last refresh in the background of this session; None when nothing did."""
        return self._views.schedule.troubles.get(self._name)

    def refresh(self) -> View:
        """Bring the view, and the views it is made of, to the present state of their tables."""
        with ProgressBar(f"refreshing {self._name}") as bar:
            self._views.refresh(self._name, bar)
        return self

    def query(self, text: str, method: str = "auto", *, confidence: float = 0.95, sample: float | None = None) -> Answer:
        """The answer to a query on the view, as if it were fresh.

        Of a stale view a share is cleaned, `sample` of it, and tells how far the rest is off: `corr` corrects what the stale view
        says, `aqp` scales up what the clean part says, `auto` takes the better for each value, `stale` says what is stored, and
        `exact` cleans all of it. Iterating over the answer gives better ones; after the last the view is fresh.
        """
        return self._views.samples.query(self._name, text, method, check_confidence(confidence), sample)

    def index_outliers(
        self, table: str, column: str, size: int | None = None, *, deviations: float | None = None,
        outside: tuple[float | None, float | None] | None = None,
    ) -> None:  # fmt: skip
        """Have the rows that hang on outliers of a table's column clean in every sample: its `size` largest values, those so many
        standard `deviations` from the mean, or those outside of a range.
        """
        chosen = DEFAULT_SIZE if size is None and deviations is None and outside is None else size
        self._views.samples.index(self._name, OutlierIndex(table, column, chosen, deviations, outside))

    def clean(self, share: float = 0.1) -> View:
        """Clean a share of a stale view now, for the questions that come."""
        self._views.samples.clean(self._name, share)
        return self

    def batch_size(self, rows_per_second: float) -> int:
        """How many changed rows to wait for before a refresh, at least, to keep up with so many a second."""
        return smallest_batch(self.state.refreshes, rows_per_second)

    def explain(self) -> str:
        """How each operator of the query is maintained, or why not and what to do instead."""
        return self._views.explain(self.text)

    def drop(self) -> None:
        self._views.drop(self._name)
