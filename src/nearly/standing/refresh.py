"""Bringing an answer up to date: the changes of what is kept, then the answer from what is kept.

Law: an answer is the query's answer over the versions of the tables that it names, whichever states are kept, made or dropped.
What an answer does not read is brought up to date when it is there, and nobody waits for that.
A refresh from changes that fails drops the states of its queries; answers that are not there yet are computed as a whole.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack

from nearly.engine.deltas.several import Moving, moving
from nearly.engine.native.failures import NativeFailure
from nearly.engine.results import finished
from nearly.engine.storage.layouts import Table
from nearly.errors import EngineError, Unsupported
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import GroupBy, Input, Plan
from nearly.rewrite.delta.with_partials import outermost, over_stored
from nearly.standing.arrivals import Expected, Prediction
from nearly.standing.course import StandingCourse, due, in_order
from nearly.standing.keeping import keep_within, measure
from nearly.standing.maintained import prepared_over, versions
from nearly.standing.upkeep import FIRST, WHOLE, StandingRefresh, Upkeep

logger = logging.getLogger(__name__)

FAILED = (NativeFailure, Unsupported, EngineError)
"""What may be raised by changes, and by what is kept: an answer that is there stays, and others are computed as a whole."""
LONG = 1.0
"""A refresh that is expected to take so many seconds is worth an estimate before it."""


@deep_recursion()
def begin(upkeep: Upkeep, tables: dict[str, Table], prediction: Prediction) -> StandingRefresh:
    """The first answer."""
    upkeep.bind(tables)
    return _as_a_whole(upkeep, tables, prediction, FIRST, "the first answer", {})


def advance(
    group: Sequence[Upkeep], tables: Mapping[str, Table], predictions: Sequence[Prediction | None]
) -> list[StandingRefresh]:
    """Bring queries that share states to new versions of their tables; without a prediction what they keep stays the same."""
    if not group:
        return []
    with group[0].store.lock:
        own = [{name: tables[name] for name in each.tables} for each in group]
        found: dict[int, StandingRefresh] = {}
        try:
            _together(group, own, predictions, found)
        except FAILED as trouble:  # a table's files as they were may be gone, those that it has now are not
            logger.info("a refresh from changes failed (%s); the answers are computed as a whole", trouble)
            _give_up(group)
            told = f"changes could not be computed: {trouble}"
            for place, (each, now, prediction) in enumerate(zip(group, own, predictions, strict=True)):
                if place not in found:
                    found[place] = _as_a_whole(each, now, prediction, WHOLE, told, {})
        except BaseException:  # what is kept may be of versions that no answer is of
            _give_up(group)
            raise
        return [found[place] for place in range(len(group))]


def _give_up(group: Sequence[Upkeep]) -> None:
    group[0].engine.life.refuse_over()
    for each in group:
        each.release()
    group[0].store.mend()


@deep_recursion()
def _together(
    group: Sequence[Upkeep],
    tables: Sequence[dict[str, Table]],
    predictions: Sequence[Prediction | None],
    found: dict[int, StandingRefresh],
) -> None:
    """Have the answers in `found` by their places in the group, each as soon as it is there: a later one may fail."""
    with ExitStack() as opened:
        courses: list[tuple[int, StandingCourse]] = []
        for place, (upkeep, now, prediction) in enumerate(zip(group, tables, predictions, strict=True)):
            course = StandingCourse.of(upkeep, now, prediction)
            if isinstance(course, StandingRefresh):
                found[place] = upkeep.answer_with(upkeep.answer, upkeep.source, now, course)
                continue
            if upkeep.early is not None and course.seconds >= LONG:
                upkeep.early(now)
            if course.is_whole:
                found[place] = _as_a_whole(upkeep, now, prediction, WHOLE, course.reason, course.changed)
            else:
                opened.enter_context(course.opened())
                courses.append((place, course))
        running = [course for _, course in courses]
        brought: set[str] = set()
        _bring_states(running, brought, {table for course in running for table in course.read_by_answer})
        for place, course in courses:
            found[place] = course.answered()
        _keep_up(running, brought)


def _keep_up(courses: Sequence[StandingCourse], brought: set[str]) -> None:
    """Have all that the next delta needs; where the native kernel fails at it, the answers are there, and nothing is kept."""
    began = time.perf_counter()
    try:
        _bring_states(courses, brought, {state.table for course in courses for state in course.upkeep.held.values()})
        after = time.perf_counter() - began
        for course in courses:
            course.keep(after)
            course.upkeep.made_seconds = time.perf_counter() - began
    except FAILED as trouble:
        logger.info("what is kept could not be brought up to date (%s); the next answers are computed as a whole", trouble)
        _give_up([course.upkeep for course in courses])


def _bring_states(courses: Sequence[StandingCourse], brought: set[str], wanted: Collection[str]) -> None:
    """Bring states that are wanted up to date, what several keep only once.

    What reads others as they were comes before these, whichever course has them. What is filled to find rows is no state, and not
    weighed with them.
    """
    states = {state.table: state for course in courses for state in course.upkeep.held.values()}
    if not wanted:
        return
    moves = due([move for course in courses for move in course.told() if move.table not in brought], wanted)
    for move in moves:
        move.ask()
    store = courses[0].upkeep.store
    with store.weighing(courses[0].moving, [each for table, each in states.items() if table not in brought]):
        for move in in_order(moves):
            move.run(store)
            brought.add(move.table)
        for course in courses:
            course.bring_rows(brought, wanted)


def _as_a_whole(
    upkeep: Upkeep,
    tables: dict[str, Table],
    prediction: Prediction | None,
    strategy: str,
    reason: str,
    changed: Mapping[str, Expected],
) -> StandingRefresh:
    """All rows computed again: by the native kernel, else by whoever can."""
    if upkeep.query.plan is not None:
        try:
            said = upkeep.planned_for if prediction is None else prediction
            return _natively(upkeep, tables, said, strategy, reason, changed)
        except (NativeFailure, Unsupported) as failure:
            _give_up([upkeep])
            if isinstance(failure, NativeFailure) and failure.is_unreadable:
                raise EngineError(f"a table's file cannot be read: {failure}") from failure
            reason = f"{reason}; the native kernel stopped: {failure}"
    began = time.perf_counter()
    result = upkeep.engine.run(prepared_over(upkeep.engine, upkeep.query.text, tables.values()))
    refresh = StandingRefresh(strategy, reason, time.perf_counter() - began, changed, versions(tables))
    return upkeep.answer_with(result.table, result.source, tables, refresh)


def _natively(
    upkeep: Upkeep, tables: dict[str, Table], prediction: Prediction, strategy: str, reason: str, changed: Mapping[str, Expected]
) -> StandingRefresh:
    """Groups on the way are looked at, so that their sizes are known and they can be kept."""
    began = time.perf_counter()
    with upkeep.store.lock, ExitStack() as opened:
        upkeep.release()
        found = opened.enter_context(moving(upkeep.store.engine, upkeep.plan, (), tables, tables, {}))
        made: dict[Plan, Plan] = {}
        groups = [node for node in set(upkeep.plan.walk()) if isinstance(node, GroupBy) and upkeep.may_keep(node, tables)]
        for place, group in enumerate(outermost(groups)):
            name = f"groups {place}"
            upkeep.rows[group] = float(found.make(name, over_stored(group, made)))
            made[group] = Input(name, group.columns)
        answer = finished(found.rows_of(over_stored(upkeep.plan, made)), upkeep.query.query)
        took = time.perf_counter() - began
        refresh = StandingRefresh(strategy, reason, took, changed, versions(tables))
        upkeep.answer_with(answer, "native", tables, refresh)
        upkeep.computed(tables, took)
        if upkeep.forced != WHOLE:
            _begin_keeping(upkeep, found, prediction, made, took)
    return refresh


def _begin_keeping(upkeep: Upkeep, found: Moving, prediction: Prediction, made: Mapping[Plan, Plan], took: float) -> None:
    """Keep what the next delta needs; where that fails, as on a disk that is full, the answer is there, and nothing is kept."""
    try:
        measure(upkeep, found, upkeep.tables, took)
        upkeep.planned = None
        keep_within(upkeep, found, prediction, made)
    except FAILED as trouble:
        logger.warning("what the next answer needs could not be kept (%s); it is computed as a whole", trouble)
        _give_up([upkeep])
