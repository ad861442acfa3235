"""The parts of a session, each loaded when it is asked for first: a query that needs no synopsis does not wait for their code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from nearly.engine.answerers import Answerer, Offer, Question

if TYPE_CHECKING:
    from nearly.answer import Answer
    from nearly.autoview.autoview import AutoView
    from nearly.engine.changes.changes import Changes
    from nearly.engine.changes.lake_tables.sources import Lakes
    from nearly.engine.engine import Engine
    from nearly.engine.planner import Prepared
    from nearly.engine.storage.lake_logs.lakes import Lake
    from nearly.missing.contingency import Contingency
    from nearly.standing.catalogue import StandingQueries
    from nearly.synopsis.catalogue import Synopses
    from nearly.views.catalogue import Views

Part = TypeVar("Part")
AUTOMATIC = "autoview"
"""The name by which `using=` asks for automatic views."""


@dataclass(frozen=True, slots=True)
class WhenKept:
    """An answerer that is loaded as soon as there is something that it could answer from, or is asked for by name."""

    is_exact: bool
    names: Callable[[], Sequence[str]]
    load: Callable[[], Answerer]

    def knows(self, name: str) -> bool:
        return bool(self.names()) and self.load().knows(name)

    def offer(self, question: Question) -> Offer:
        return Offer(()) if question.using is None and not self.names() else self.load().offer(question)


@dataclass(frozen=True, slots=True)
class Automatic:
    """The answerer of automatic views, loaded once they are on or asked for by name."""

    current: Callable[[], AutoView | None]

    @property
    def is_exact(self) -> bool:
        return True

    def knows(self, name: str) -> bool:
        return name.lower() == AUTOMATIC

    def offer(self, question: Question) -> Offer:
        if question.using is None and self.current() is None:
            return Offer(())
        from nearly.autoview.autoview import AutoViewAnswerer

        return AutoViewAnswerer(self.current).offer(question)


class Rooms:
    """What a session consists of, over one engine. Law: a part that nobody asked for costs nothing to open or close."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}
        self._automatic: AutoView | None = None
        self.answerers: tuple[Answerer, ...] = (
            WhenKept(False, self._synopsis_names, lambda: self._once("synopsis answerer", self._synopsis_answerer)),
            WhenKept(True, lambda: engine.catalog.views, lambda: self._once("view answerer", self._view_answerer)),
            Automatic(lambda: self._automatic),
        )
        if engine.catalog.views:
            _ = self.views  # some may be refreshed in the background from now on

    @property
    def changes(self) -> Changes:
        from nearly.engine.changes.changes import Changes

        return self._once("changes", lambda: Changes(self._engine))

    @property
    def lakes(self) -> Lakes:
        from nearly.engine.changes.lake_tables.sources import Lakes

        return self._once("lakes", lambda: Lakes(self._engine))

    def lake_of(self, source: Any) -> Lake | None:
        """The source as a table with versions of its own; None when it is none."""
        from nearly.engine.changes.lake_tables.sources import lake_of

        return lake_of(source)

    @property
    def synopses(self) -> Synopses:
        from nearly.synopsis.catalogue import Synopses

        return self._once("synopses", lambda: Synopses(self._engine, self.changes))

    @property
    def views(self) -> Views:
        from nearly.views.catalogue import Views

        return self._once("views", lambda: Views(self._engine, self.changes))

    @property
    def standing(self) -> StandingQueries:
        from nearly.progressive.run import Request, Run
        from nearly.standing.catalogue import StandingQueries

        def estimated(prepared: Prepared) -> Answer | None:
            return Run(self._engine, prepared, Request()).early()

        return self._once("standing", lambda: StandingQueries(self._engine, estimated))

    @property
    def contingency(self) -> Contingency:
        from nearly.missing.contingency import Contingency

        return self._once("contingency", lambda: Contingency(self._engine))

    def autoview(self, storage: int | None, policy: str | None, slowdown: float | None, seed: int | None) -> AutoView:
        """Automatic views as they are on, or on from now with other settings."""
        from nearly.autoview.autoview import AutoView, changed

        with self._lock:
            settings = changed(self._automatic, storage, policy, slowdown, seed)
            if settings is not None:
                if self._automatic is not None:
                    self._automatic.close()
                self._automatic = AutoView(self._engine, settings)
            assert self._automatic is not None  # noqa: S101  there are settings where there is none yet
            return self._automatic

    def close(self, life_ends: Callable[[], None]) -> None:
        """Close every part that was made, whatever becomes of the others; an error of one of them is raised afterwards."""
        with ExitStack() as parts:  # without the lock: who is waited for may ask for a part
            if "views" in self._made:
                parts.callback(self.views.ended)
            parts.callback(self._engine.close)
            if "synopses" in self._made:
                parts.callback(self.synopses.close)
            if "changes" in self._made:
                parts.callback(self.changes.close)
            if "views" in self._made:
                parts.callback(self.views.stop)
            if "standing" in self._made:
                parts.callback(self.standing.close)
            if self._automatic is not None:
                parts.callback(self._automatic.close)
            parts.callback(life_ends)

    def _once(self, name: str, make: Callable[[], Part]) -> Part:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            found: Part = self._made[name]
            return found

    def _synopsis_names(self) -> Sequence[str]:
        directory = self._engine.catalog.path / "synopses"
        return [each.name for each in directory.iterdir()] if directory.is_dir() else ()

    def _synopsis_answerer(self) -> Answerer:
        from nearly.synopsis.routing import SynopsisAnswerer

        return SynopsisAnswerer(self.synopses)

    def _view_answerer(self) -> Answerer:
        from nearly.views.routing import ViewAnswerer

        return ViewAnswerer(self.views)
