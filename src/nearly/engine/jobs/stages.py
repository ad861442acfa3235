"""A distributed plan cut into stages: the pieces between two exchanges, each run on one or on all sites."""

from __future__ import annotations

from dataclasses import dataclass

from nearly.plan.nodes import Exchange, Input, Plan, Scan


@dataclass(frozen=True, slots=True)
class Stage:
    """A fragment with what it reads and how its rows move on.

    It runs once when all it reads is whole (`width` 1), else once per site.
    """

    name: str
    plan: Plan
    inputs: tuple[Stage, ...]
    width: int
    exchange: Exchange

    def slots(self, consumer_width: int) -> int:
        """To how many tasks of the consumer the rows go."""
        return 1 if self.exchange.kind == "gather" else consumer_width


@dataclass(frozen=True, slots=True)
class Tail:
    """What runs at the driver, over the rows that the last stages hand in."""

    plan: Plan
    inputs: tuple[Stage, ...]


def cut(plan: Plan, sites: int) -> Tail:
    """The stages of a plan with exchanges. Law: running them and then the tail gives the plan's rows."""
    return Tail(*_Cutter(sites).cut(plan))


class _Cutter:
    def __init__(self, sites: int) -> None:
        self.sites = sites
        self._count = 0

    def cut(self, plan: Plan) -> tuple[Plan, tuple[Stage, ...]]:
        """The plan above its topmost exchanges, and the stages below them; equal exchanges are one stage."""
        found: dict[Exchange, Stage] = {}

        def replaced(node: Plan) -> Plan:
            if not isinstance(node, Exchange):
                return node.map_children(replaced)
            if node not in found:
                found[node] = self._stage(node)
            return Input(found[node].name, node.columns)

        return replaced(plan), tuple(found.values())

    def _stage(self, exchange: Exchange) -> Stage:
        plan, inputs = self.cut(exchange.child)
        self._count += 1
        spread = any(isinstance(node, Scan) and node.share != "all" for node in plan.walk())
        hashed = any(stage.exchange.kind == "hash" for stage in inputs)
        return Stage(f"stage_{self._count}", plan, inputs, self.sites if spread or hashed else 1, exchange)
