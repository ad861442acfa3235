"""What survives a session: the views that are kept, what was measured, and what the policy learned, as JSON can hold it.

Law: what cannot be read again, or whose files are not what they were, is as if it had never been.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nearly.autoview.candidates import Candidate
from nearly.autoview.keeping import Keeping
from nearly.autoview.mining import Fact
from nearly.autoview.options import Holding, Option, ViewShape
from nearly.autoview.store import ROWS, MadeView, ViewStore, read_list
from nearly.engine.storage.serialise import decode, encode
from nearly.errors import NearlyError
from nearly.plan.depth import FRAMES, deep_recursion
from nearly.plan.reading import Reading
from nearly.plan.stored_form import restored, stored
from nearly.rewrite.views.split_view import StoredView

DEEPEST = FRAMES // 3
"""Reading a list again takes two calls for each value in a value, and whoever reads it has some behind himself."""


@deep_recursion()
def save(keeping: Keeping) -> None:
    """Write what is kept, and what was learned."""
    store = keeping.store
    content = {
        "views": [found for each in list(store.kept.values()) if (found := _stored(each, store)) is not None],
        "number": store.number,
        "step": keeping.step,
        "facts": {id_: asdict(fact) for id_, fact in dict(keeping.mining.facts).items()},  # queries go on meanwhile
        "gains": [[*key, gain, keeping.shares.get(key, 1.0)] for key, gain in list(keeping.gains.items())],
        "policy": keeping.policy.name,
        "learned": keeping.policy_content(),
    }
    store.save(content)


@deep_recursion()
def load(keeping: Keeping) -> None:
    """Have what an earlier session left; a policy of another name begins anew."""
    store = keeping.store
    content = read_list(store.directory)
    try:
        views = [] if content is None else _views(content, store.directory)
        if content is not None:
            keeping.step = int(content["step"])
            keeping.mining.facts |= {id_: Fact(**fact) for id_, fact in content["facts"].items()}
            keeping.gains.update({(question, view): gain for question, view, gain, _ in content["gains"]})
            keeping.shares.update({(question, view): share for question, view, _, share in content["gains"]})
            if content["policy"] == keeping.policy.name and content["learned"]:
                keeping.policy.restore(content["learned"])
    except (KeyError, TypeError, ValueError, RecursionError, NearlyError):
        views = []
    total = 0
    fitting = []
    for view in views:
        total += view.holding.bytes
        if total <= store.limit:
            fitting.append(view)
    store.restore(fitting, 0 if content is None else int(content.get("number", 0)))


@deep_recursion()
def left_in(directory: Path) -> tuple[str, list[MadeView]] | None:
    """The policy and the views that the sessions of a catalog left, for whoever only looks; None where there never were any."""
    content = read_list(directory)
    try:
        return None if content is None else (str(content["policy"]), _views(content, directory))
    except (KeyError, TypeError):
        return None


@deep_recursion()
def clear(directory: Path) -> None:
    """Free what the sessions of a catalog left, unless one has it now; what was learned stays."""
    store = ViewStore(directory, 1)
    try:
        content = read_list(directory)
        if content is not None:
            store.save({**content, "views": []})
        store.restore((), 0)
    finally:
        store.close()


def _views(content: Mapping[str, Any], directory: Path) -> list[MadeView]:
    return [found for each in content["views"] if (found := _kept(each, directory)) is not None]


def _stored(kept: MadeView, store: ViewStore) -> dict[str, Any] | None:
    """A view as the list has it; None where it cannot be kept, or is so deep that it may not be read again."""
    try:
        found = _view(kept, store)
    except (NearlyError, RecursionError):
        return None
    return found if _is_flat(found) else None


def _is_flat(content: Any) -> bool:
    """Whether values lie in at most `DEEPEST` others: looked for level by level, since deep ones leave no room for calls."""
    level = [content]
    for _ in range(DEEPEST):
        level = [each for value in level for each in (value.values() if isinstance(value, dict) else value)]
        level = [each for each in level if isinstance(each, dict | list | tuple)]
        if not level:
            return True
    return False


def _view(kept: MadeView, store: ViewStore) -> dict[str, Any]:
    candidate, root = kept.candidate, str(store.directory)
    reading = candidate.stored.reading
    return {
        "id": candidate.id, "kind": candidate.kind, "plan": stored(candidate.plan), "shape": asdict(candidate.shape),
        "maintained": stored(candidate.stored.maintained), "columns": list(candidate.stored.columns),
        "reading": None if reading is None else [stored(reading.plan), list(reading.names)], "key": list(candidate.stored.key),
        "table": encode(kept.table, root), "versions": {name: list(each) for name, each in kept.versions.items()},
        "holding": asdict(kept.holding), "path": kept.path.name, "zone": kept.zone, "text": candidate.text,
        "hidden": candidate.hidden,
    }  # fmt: skip


def _kept(read: Mapping[str, Any], directory: Path) -> MadeView | None:
    try:
        reading = None if read["reading"] is None else Reading(restored(read["reading"][0]), tuple(read["reading"][1]))
        view = StoredView(restored(read["maintained"]), tuple(read["columns"]), reading, tuple(read["key"]))
        shape = _shape(read["shape"])
        text, hidden = str(read.get("text", "")), bool(read.get("hidden", False))
        candidate = Candidate(read["id"], read["kind"], restored(read["plan"]), view, shape, text, hidden)
        table = decode(read["table"], str(directory))
        table.base.verify()
        versions = {name: (int(version), str(content)) for name, (version, content) in read["versions"].items()}
        path = directory / ROWS / Path(read["path"]).name
        return MadeView(candidate, table, versions, _holding(read["holding"]), path, str(read["zone"]))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, NearlyError):
        return None


def _shape(read: Mapping[str, Any]) -> ViewShape:
    pairs = tuple((str(name), float(share)) for name, share in read["selectivities"])
    return ViewShape(tuple(read["tables"]), tuple(read["groups"]), pairs)


def _holding(read: Mapping[str, Any]) -> Holding:
    option = read["option"]
    return Holding(**{**read, "option": Option(**{**option, "shape": _shape(option["shape"])})})
