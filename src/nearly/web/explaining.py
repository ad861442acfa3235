"""The explanation of a query taken apart, so that a page can draw the plan."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_FACTS = ("kernel", "why", "reads", "sites")
_NODE = re.compile(r"^(?P<indent> *)(?P<operator>[A-Z]\w*)(?: (?P<detail>.*?))?(?:    -- (?P<note>.*))?$")
_SUFFIX = re.compile(r"\b([A-Za-z_]\w*?)_\d+\b")
"""Columns of plans have a number, which says nothing to a reader."""


@dataclass(slots=True)
class PlanStage:
    """Operators that run in one place, each with how deep it lies below the last one."""

    name: str
    where: str
    nodes: list[dict[str, Any]] = field(default_factory=list)


def taken_apart(text: str) -> dict[str, Any]:
    """Facts (kernel, why, what is read), stages of operators, and what views and synopses say to the query.

    >>> found = taken_apart("kernel: native\\n\\nstage_0: one task\\n  Limit 3\\n    Scan t [a]    -- 5 rows")
    >>> found["stages"][0]["nodes"][1]
    {'depth': 1, 'operator': 'Scan', 'detail': 't [a]', 'note': '5 rows'}
    """
    facts: dict[str, str] = {}
    stages: list[PlanStage] = []
    remarks: list[str] = []
    for line in text.splitlines():
        name, colon, rest = line.partition(": ")
        node = _NODE.match(line) if line.startswith("  ") or (stages and stages[-1].name == "plan") else None
        if name in _FACTS and colon and name not in facts:
            facts[name] = rest
        elif line == "plan:":
            stages.append(PlanStage("plan", ""))
        elif node is not None and stages:
            stages[-1].nodes.append(_node(node, 1 if line.startswith("  ") and stages[-1].name != "plan" else 0))
        elif colon and re.fullmatch(r"driver|stage\w*", name):
            stages.append(PlanStage(name, rest))
        elif line.strip():
            remarks.append(line.strip())
    told = [{"name": each.name, "where": each.where, "nodes": each.nodes} for each in stages if each.nodes or each.where]
    return {"facts": facts, "stages": told, "remarks": remarks, "text": text}


def _node(found: re.Match[str], less: int) -> dict[str, Any]:
    return {
        "depth": len(found["indent"]) // 2 - less,
        "operator": found["operator"],
        "detail": _SUFFIX.sub(r"\1", found["detail"] or ""),
        "note": _SUFFIX.sub(r"\1", found["note"] or ""),
    }
