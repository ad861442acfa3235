"""Why a refresh computed everything anew, in the words of `rewrite.delta.reasons`, with what is known of the one refresh."""

from __future__ import annotations

from dataclasses import replace

from nearly.rewrite.delta.strategy.reasons import REASONS, Reason

STORED_OTHERWISE = Reason(
    "STORED_OTHERWISE", "the tables have other columns now, or nulls in their keys, so that other columns are stored", ""
)
REPLACED = Reason("STORED_OTHERWISE", "the stored rows were not those that the old tables give, and were replaced", "")
POLICY_FULL = Reason("POLICY_FULL", "the view is kept with policy='full'", "")


def told(reason: Reason | None) -> str:
    """A reason as text."""
    if reason is None:
        return ""
    return f"{reason.code}: {reason.why}" + (f"; {reason.instead}" if reason.instead else "")


def no_history(table: str) -> Reason:
    why = f"table {table!r} was registered anew, or its old versions are gone, and no log tells what changed"
    return replace(REASONS["SOURCE_HAS_NO_HISTORY"], why=why)


def other_zone(zone: str | None) -> Reason:
    return Reason("OTHER_TIME_ZONE", f"its rows were computed in time zone {zone}, and this session is in another", "")


def spark_only(why: str) -> Reason:
    return replace(REASONS["SPARK_ONLY"], why=f"Spark computes it again, since the native kernel does not take the query: {why}")


def changed_too_much(changed: int, delta: float, whole: float) -> Reason:
    why = f"{changed:,} rows changed: from them it takes about {delta:.3f} s, computed anew about {whole:.3f} s"
    return replace(REASONS["CHANGED_TOO_MUCH"], why=why)
