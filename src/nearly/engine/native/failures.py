"""Errors of the native engine on their way to the driver: as data, so that Spark does not retry a task for them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import duckdb
import pyarrow as pa

from nearly.engine.native.function_adapters import function_failure
from nearly.errors import EngineError

UNREADABLE = frozenset({"IOException"})


class NativeFailure(Exception):
    """The native engine stopped with an error; whether it is the query's fault is for Spark to say.

    `kind` is DuckDB's class of the error.
    """

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(f"{kind}: {text}" if kind else text)
        self.kind = kind

    @property
    def is_unreadable(self) -> bool:
        """Whether a file could not be read, which Spark would not change."""
        return self.kind in UNREADABLE


def explained(trouble: duckdb.Error) -> Exception:
    """What to raise for an error of the native engine: one of a user's function is final, any other is a question to Spark."""
    return _raised(type(trouble).__name__, str(trouble))


_KINDS: dict[str, type[duckdb.Error]] = {"INTERRUPT Error": duckdb.InterruptException, "IO Error": duckdb.IOException}


def read_in_batches(rows: duckdb.DuckDBPyRelation, size: int) -> Iterator[pa.RecordBatch]:
    """The rows of a result, some at a time; what Arrow raises meanwhile is raised as the native engine's error that it was."""
    reader = rows.to_arrow_reader(size)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (OSError, pa.ArrowException) as trouble:
            text = str(trouble)
            raise _KINDS.get(text.partition(":")[0], duckdb.Error)(text) from trouble
        yield batch


def final(trouble: duckdb.Error) -> EngineError:
    """What to raise where Spark is not asked: no query failed, but something that only the native engine does."""
    found = explained(trouble)
    return found if isinstance(found, EngineError) else EngineError(f"the native engine failed: {found}")


def packed(trouble: duckdb.Error | EngineError) -> bytes:
    """An error as it travels. Law: `unpacked(packed(e))` is what the driver would have raised for it itself."""
    return json.dumps([type(trouble).__name__, str(trouble)]).encode()


def unpacked(payload: bytes) -> Exception:
    kind, text = json.loads(payload)
    return EngineError(text) if kind == EngineError.__name__ else _raised(kind, text)


def _raised(kind: str, text: str) -> Exception:
    return function_failure(text) or NativeFailure(text, kind)
