"""How a query runs, for people: each stage, where it runs, what it reads, and how its rows move on."""

from __future__ import annotations

from nearly.engine.jobs.stages import Stage, Tail
from nearly.engine.spark.cluster import Sites
from nearly.plan.explain import explain
from nearly.plan.nodes import GroupBy, Input, Join, Plan, Scan
from nearly.plan.properties import clustering, equated, keys
from nearly.plan.schema import FindTable


def explain_stages(tail: Tail, sites: Sites, find_table: FindTable) -> str:
    """The stages in the order they run, and at the end what the driver does."""
    lines = [f"sites: {sites.executors} executor(s) with {sites.cores} core(s) each"]
    for stage in _in_order(tail.inputs):
        where = "one task" if stage.width == 1 else f"{stage.width} tasks, one per site"
        lines += ["", f"{stage.name}: {where}; {_movement(stage)}", _indented(stage.plan, find_table)]
    if isinstance(tail.plan, Input):
        lines += ["", "driver: takes the rows as they are"]
    else:
        lines += ["", "driver: merges and finishes, in DuckDB, with no Spark job", _indented(tail.plan, find_table)]
    return "\n".join(lines)


def _in_order(stages: tuple[Stage, ...]) -> list[Stage]:
    """Stages before those that read them, each once."""
    ordered: dict[str, Stage] = {}
    for stage in stages:
        for each in (*_in_order(stage.inputs), stage):
            ordered.setdefault(each.name, each)
    return list(ordered.values())


def _movement(stage: Stage) -> str:
    match stage.exchange.kind:
        case "hash":
            return f"shuffled by a hash of {', '.join(key.name for key in stage.exchange.keys)}"
        case "broadcast":
            return "sent to every site"
    return "sent to one place"


def _indented(plan: Plan, find_table: FindTable) -> str:
    text = explain(plan, lambda node: _note(node, find_table))
    return "\n".join(f"  {line}" for line in text.splitlines())


def _note(node: Plan, find_table: FindTable) -> str:
    """What is worth knowing of a node beside what it does."""
    notes = []
    if isinstance(node, Scan):
        notes.append(_reading(node, find_table))
    elif isinstance(node, Join):
        notes.append(_locality(node, find_table))
    if isinstance(node, Scan | Join | GroupBy):
        found = sorted(sorted(key) for key in keys(node, find_table))
        if found:
            notes.append("key " + " or ".join("(" + ", ".join(key) + ")" for key in found))
    return "; ".join(filter(None, notes))


def _reading(node: Scan, find_table: FindTable) -> str:
    table = find_table(node.table)
    match node.share:
        case "range":
            return f"each site reads its range of {table.ranges_of}"
        case "buckets":
            return f"each site reads its buckets of layout {node.layout}"
        case "blocks":
            return f"each site reads its share of {table.blocks} blocks"
    return f"all {table.rows:,} rows are read here"


def _locality(node: Join, find_table: FindTable) -> str:
    """A join of two tables clustered by the join columns needs no more than one block, or bucket, of each at a time."""
    if all(any(isinstance(leaf, Scan) and leaf.share == "buckets" for leaf in side.walk()) for side in node.children):
        return "bucket-local"
    left, right = clustering(node.left, find_table), clustering(node.right, find_table)
    local = [f"{a.name} = {b.name}" for a, b in equated(node) if a.name in left and b.name in right]
    return f"block-local on {', '.join(local)}" if local else ""
