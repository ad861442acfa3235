"""Refreshing: a view moves with all its inputs to one consistent set of versions.

Law: after a refresh the view's rows are its query's rows over the tables in the versions that its notes name. A view on views
moves those below it first, over the same tables.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace

from nearly.engine.changes.changes import Changes
from nearly.engine.engine import Engine
from nearly.engine.storage.layouts import AT, Table
from nearly.engine.writing.parquet_writer import Progress
from nearly.errors import EngineError, UnknownName
from nearly.plan.depth import deep_recursion
from nearly.plan.syntax.parse import parse_query
from nearly.plan.syntax.volatile import is_volatile
from nearly.views.definition import RememberedPlans
from nearly.views.kept_groups import drop_groups, noted
from nearly.views.moving import Move, Pinned, definition_of, is_elsewhere
from nearly.views.states import At, State, reads_in, state_of, versions_of

logger = logging.getLogger(__name__)


COMPACTED, COMPACTED_FILES = 10_000, 32
"""A view is small, and changes often: it is written anew after so many deleted rows, or files of them."""


class Overtaken(Exception):
    """Someone else moved a view further than the versions that this refresh is about."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Keeps the views of an engine's catalog."""

    engine: Engine
    changes: Changes
    plans: RememberedPlans = field(default_factory=RememberedPlans)

    def refresh(self, name: str, progress: Progress | None = None) -> Table:
        """Bring a view, and those below it, to the present versions of their tables."""
        return self.together([name], progress)[name.lower()]

    @deep_recursion()
    def together(self, names: Iterable[str], progress: Progress | None = None) -> dict[str, Table]:
        """Tables of one moment, and views brought to these, by their names in small letters; the tables and views below, too."""
        wanted = tuple(names)
        while True:
            views = [name for name in wanted if is_view(self.engine.catalog.table(name))]
            order = list(dict.fromkeys(each for name in views for each in self.below(name)))
            leaves = dict.fromkeys((*self._leaves(order), *(name for name in wanted if name not in views)))
            pinned = {table.name.lower(): table for table in self.engine.catalog.together(leaves)}
            try:
                for each in order:
                    pinned[each.lower()] = self._refresh(each, pinned, progress)
            except Overtaken:
                continue
            return pinned

    def below(self, name: str) -> list[str]:
        """A view and all views that it is made of, each after those that it needs."""
        found: list[str] = []
        for each in self.state(name).inputs:
            if is_view(self._table(name, each)):
                found += [view for view in self.below(each) if view not in found]
        return [*found, self.engine.catalog.table(name).name]

    def above(self, name: str) -> list[str]:
        """The views that are made of a table or view."""
        wanted = name.lower()
        return [
            view
            for view in self.engine.catalog.views
            if wanted in {each.partition(AT)[0].lower() for each in self.state(view).inputs}
        ]

    def state(self, name: str) -> State:
        return state_of(self.engine.catalog.noted(name)[1])

    def leaves(self, tables: Iterable[Table]) -> dict[str, At]:
        """The tables below some tables and views, in the versions that the views are of."""
        found: dict[str, At] = {}
        for table in tables:
            if is_view(table):
                now, notes = self.engine.catalog.noted(table.name)
                if At.of(now) != At.of(table):
                    raise Overtaken
                found |= state_of(notes).leaves
            else:
                found |= versions_of([table])
        return dict(sorted(found.items()))

    def _leaves(self, views: Iterable[str]) -> list[str]:
        found = {each: self._table(view, each) for view in views for each in self.state(view).inputs}
        return [name for name, table in found.items() if not is_view(table)]

    def _table(self, view: str, name: str) -> Table:
        try:
            return self.engine.catalog.table(name)
        except UnknownName:
            raise EngineError(f"view {view!r} needs table {name!r}, which is gone; register it again, or drop the view") from None

    def _refresh(self, name: str, pinned: Pinned, progress: Progress | None) -> Table:
        with self._turn(name):
            table, state = self.engine.catalog.table(name), self.state(name)
            if self._is_ahead(state, pinned):
                raise Overtaken
            moved = self._moved(state, pinned)
            definition = definition_of(table)
            if moved.inputs != state.inputs or is_elsewhere(self.engine, definition) or self._may_differ(definition.text):
                self._expect()
                table = Move(self.engine, table, state, moved, pinned, self.plans).done(progress)
                kept = self.state(name).groups
                if kept.keys() != state.groups.keys():  # those that are no longer asked for
                    drop_groups(self.engine, name, kept)
            elif moved != state:  # tables changed, and the views below did not
                self.engine.catalog.commit_batches([], {table.name: moved.notes}, [table])
        self.pin(name)
        for each in (table, *self._groups(name)):
            if each.base.gone > COMPACTED or len(each.base.vectors) > COMPACTED_FILES:
                self.changes.compact_later(each)
        return table

    def _may_differ(self, text: str) -> bool:
        """Whether a query may have other rows over the same tables: later, by chance, or since a user's function is another."""
        functions = self.engine.functions
        return is_volatile(text) or (bool(functions.live()) and bool(functions.kept_for(parse_query(text))))

    def _expect(self) -> None:
        """Who reads a change first reads it for all views, those that other sessions made included."""
        for view in self.engine.catalog.views:
            with suppress(UnknownName):  # it was dropped meanwhile
                for table, columns in reads_in(self.engine.catalog.noted(view)[1]).items():
                    self.engine.native.recent.expect(table, columns)

    @contextmanager
    def _turn(self, name: str) -> Iterator[None]:
        """The turn to change a view, and what is kept beside it."""
        with ExitStack() as turns:
            turns.enter_context(self.engine.catalog.changing(name))
            for each in self._groups(name):
                turns.enter_context(self.engine.catalog.changing(each.name))
            yield

    def _groups(self, name: str) -> list[Table]:
        """The tables that are kept beside a view."""
        catalog = self.engine.catalog
        return [catalog.table(each) for each, _ in self.state(name).groups.values() if each and each in catalog]

    def ahead(self, name: str) -> Move | None:
        """What a refresh would do to a view; those below it are refreshed. None where there is nothing to do."""
        while True:
            *below, own = self.below(name)
            pinned = {table.name.lower(): table for table in self.engine.catalog.together(self._leaves([*below, own]))}
            try:
                for each in below:
                    pinned[each.lower()] = self._refresh(each, pinned, None)
            except Overtaken:
                continue
            table, notes = self.engine.catalog.noted(own)
            state = state_of(notes)
            if self._is_ahead(state, pinned):
                continue
            moved = self._moved(state, pinned)
            if moved.inputs == state.inputs and not is_elsewhere(self.engine, definition_of(table)):
                return None
            return Move(self.engine, table, state, moved, pinned, self.plans)

    def _moved(self, state: State, pinned: Pinned) -> State:
        """The state of a view over the pinned tables."""
        inputs = {each: At.of(pinned[each.lower()]) for each in state.inputs}
        below = self._below(state)
        if any(leaf.lower() not in pinned for leaf in below):  # a view below was replaced meanwhile
            raise Overtaken
        leaves = {leaf: At.of(pinned[leaf.lower()]) for leaf in sorted(below)}
        if inputs == state.inputs:
            return replace(state, leaves=leaves)
        return State(inputs, leaves, state.refreshes, groups=noted((), state.groups, {}))

    def _is_ahead(self, state: State, pinned: Pinned) -> bool:
        """Whether a view is of later versions of its tables; a table that was dropped and made again has none."""
        for leaf, at in state.leaves.items():
            mine = pinned.get(leaf.lower())
            if mine is not None and at.version > mine.version and self.engine.catalog.table(leaf).version > mine.version:
                return True
        return False

    def _below(self, state: State) -> set[str]:
        """The tables below the inputs of a view, as they are now."""
        found: set[str] = set()
        for each in state.inputs:
            table = self.engine.catalog.table(each)
            found |= set(self.state(each).leaves) if is_view(table) else {each}
        return found

    def pin(self, name: str) -> None:
        """Keep the versions of its inputs that a view is of, so that what happened since can be told."""
        oldest: dict[str, int] = {}
        for each, at in self.state(name).inputs.items():
            plain = each.partition(AT)[0]
            oldest[plain] = min(at.version, oldest.get(plain, at.version))
        for plain, version in oldest.items():
            if plain in self.engine.catalog:
                self.engine.catalog.keep(plain, name, version)

    def unpin(self, name: str, state: State) -> None:
        for plain in {each.partition(AT)[0] for each in state.inputs}:
            if plain in self.engine.catalog:
                self.engine.catalog.keep(plain, name, None)


def is_view(table: Table) -> bool:
    """Whether a table is a view as it is now, not one of its versions."""
    return table.view is not None and AT not in table.name
