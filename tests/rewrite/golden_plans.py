"""Golden plans: `golden/<room>/<pass>.sql` holds queries and what the pass makes of them, as text.

With NEARLY_GOLDEN=renew in the environment the tests write what they find; read the difference before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import indent

from nearly.plan.explain import describe, explain
from nearly.plan.nodes import Plan, Scan
from nearly.rewrite.stream.cut import Cut
from nearly.rewrite.weigh.weighted import Weighted
from tests.fixtures.queries import EXPECTED, QueryCase, read

GOLDEN = Path(__file__).parent / "golden"


def cases(name: str) -> list[QueryCase]:
    """The queries of one pass, for example `stream/census`."""
    return read(GOLDEN / f"{name}.sql")


def check(name: str, case: QueryCase, text: str) -> None:
    """The text of a case must be the golden one."""
    if os.environ.get("NEARLY_GOLDEN") == "renew":
        _renew(GOLDEN / f"{name}.sql", case, text)
    else:
        assert text == case.expected


def _renew(path: Path, case: QueryCase, text: str) -> None:
    head, found, rest = path.read_text(encoding="utf-8").partition(f"-- name: {case.name}\n")
    body, _, others = rest.partition("\n-- name: ")
    query = body.partition(EXPECTED)[0].rstrip()
    lines = "\n".join(f"-- {line}" for line in text.splitlines())
    path.write_text(f"{head}{found}{query}\n{EXPECTED}\n{lines}\n" + (f"\n-- name: {others}" if others else ""), encoding="utf-8")


def shown(plan: Plan) -> str:
    """A plan as text, with the share of a table that is read."""
    return explain(plan, lambda node: _share(node) if isinstance(node, Scan) else "")


def _share(scan: Scan) -> str:
    words = [] if scan.share == "all" else [scan.share]
    return " of ".join([*words, scan.layout] if scan.layout != "base" else words)


def under(title: str, plan: Plan | str) -> str:
    """A plan below a title."""
    return f"{title}:\n{indent(plan if isinstance(plan, str) else shown(plan), '  ')}"


def shown_cut(cut: Cut) -> str:
    """The tail and the stages of a cut."""
    facts = [name for name, holds in (("ranged", cut.ranged), ("not mergeable", not cut.mergeable)) if holds]
    parts = [under(", ".join(["tail", *facts]), cut.tail)]
    for stage in cut.stages:
        words = [stage.name]
        words += ["once"] if not stage.streamed else [f"unit {stage.unit}"] if stage.unit else ["units"]
        words += [f"parts by [{', '.join(stage.keys)}]"] if stage.partial else []
        parts.append(under(", ".join(words), stage.plan))
        if stage.waiting is not None:
            for lookup in stage.waiting.decision.lookups:
                title = f"{lookup.name}, for [{', '.join(stage.waiting.columns)}] until {stage.waiting.mark}"
                parts.append(under(title, lookup.values))
    return "\n".join(parts)


def shown_weighted(found: Weighted) -> str:
    """A plan over weighted rows, and what is known of its rows and columns."""
    rows = found.rows
    hanging = [f"keys of {describe(each)}" for each in rows.keys]
    hanging += [name for name, holds in (("undecided", rows.undecided), ("open", rows.open)) if holds]
    facts = {
        "rows": ", ".join(hanging) or "final",
        "evolving": " ".join(sorted(found.evolving)),
        "doubles": " ".join(sorted(found.doubles)),
        "extremes": " ".join(sorted(found.extremes)),
        "evidence": "; ".join(f"{name} {' '.join(sorted(masks))}" for name, masks in sorted(found.evidence.items()) if masks),
        "present": " ".join(sorted(found.present)),
    }
    return "\n".join([shown(found.plan), *(f"{name}: {text}" for name, text in facts.items() if text)])
