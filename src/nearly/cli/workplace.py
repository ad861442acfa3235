"""Where texts of the command line are run: a session, the tables that `--data` names, and what is shown of the answers."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nearly.answer import Answer
from nearly.cli.formats import write, write_look
from nearly.cli.lake import Sources, refuse_unknown_columns, table_name, tables_asked_for
from nearly.cli.settings import ShellSettings
from nearly.display.lines import Lines
from nearly.display.show import Face, Shown, show, terminal
from nearly.display.status import Doing, waiting
from nearly.errors import EngineError, SchemaError
from nearly.looking import is_look, look, looked_at
from nearly.plan.schema import TableSchema
from nearly.plan.syntax.file_names import with_named_files
from nearly.plan.syntax.goal import split_goal
from nearly.plan.syntax.statements import parse_statement
from nearly.printing.numbers import duration_text
from nearly.session import Session, connect

_CHANGES = frozenset({"insert", "delete", "update", "merge", "stream"})
"""Operations after which a table's rows are no longer those of its source."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell gives it; the last answer was printed."""


@dataclass(slots=True)
class Workplace:
    """Runs statements one after the other; tables are registered when a text names them first."""

    db: Session
    found: Sources
    settings: ShellSettings = field(default_factory=ShellSettings)
    keeps: bool = False
    """Whether the catalog stays, so that tables may be changed."""
    _files: dict[str, str] = field(default_factory=dict)

    def run(self, text: str) -> int:
        """Run one statement, show what comes of it, and give the exit code."""
        started = time.monotonic()
        try:
            if is_look(text):
                return self._look(text)
            self._refuse_unknown(text)
            named = self.with_files(text)
            if parse_statement(split_goal(named)[0]) is not None:
                return self._change(named)
            return self._answer(named)
        finally:
            if self.settings.timer:
                print(f"Time: {duration_text(time.monotonic() - started)}", file=sys.stderr)

    @property
    def names(self) -> tuple[str, ...]:
        """All tables and views that a text may name."""
        return tuple(sorted({*self.found, *self.db.tables, *self.db.views}))

    def with_files(self, text: str) -> str:
        """The text with names for the files that it selects from; they are tables from now on."""
        return with_named_files(text, self._file)

    def register_all(self) -> None:
        """Make every table known that was found: whoever lists them wants to see their columns."""
        for name in self.found:
            self._register(name)

    def _refuse_unknown(self, text: str) -> None:
        """A table or a column that does not exist is told from the heads of files, before they are read for the first time."""
        waiting: Sources = {}

        def name_of(path: str) -> str:
            if path in self._files:
                return f"`{self._files[path]}`"
            waiting[f"nearly_file_{len(waiting)}"] = Path(path)
            return list(waiting)[-1]

        named = with_named_files(text, name_of)
        asked = tables_asked_for(named, self.found, frozenset((*waiting, *self.db.tables, *self.db.views)))
        waiting |= {name: source for name, source in asked.items() if name not in self._files}
        if waiting:
            here = [name for name in self.db.tables if name not in waiting]
            refuse_unknown_columns(
                named, waiting, {name.lower(): TableSchema(name, self.db.table(name).info.columns) for name in here}
            )

    def _file(self, path: str) -> str:
        if not path.strip():
            raise EngineError("a file has no name; write for example FROM 'rides.parquet'")
        if path not in self._files:
            stem = table_name(Path(path)) or re.sub(r"\W", "_", Path(path).stem) or "file"
            taken = {name.lower() for name in (*self.found, *self.db.tables, *self.db.views)}
            name = next(each for each in (stem, *(f"{stem}_{n}" for n in range(2, 1000))) if each.lower() not in taken)
            if not Path(path).exists() and not any(mark in path for mark in "*?["):
                raise EngineError(f"{path!r} does not exist; files are named relative to {Path.cwd()}")
            self.db.register(name, path)
            self._files[path] = name
        return f"`{self._files[path]}`"

    def _look(self, text: str) -> int:
        about = looked_at(text)
        if about is None:
            self.register_all()
        else:
            file = re.fullmatch(r"'([^']+)'", about.strip())
            if file is not None:
                text = text.replace(about, self._file(file[1]), 1)
                about = self._file(file[1])
            if re.match(r"\s*(SELECT|WITH)\b", about, re.IGNORECASE):
                self._refuse_unknown(about)
            text = text.replace(about, self.with_files(about), 1) if about in text else text
            about = self.with_files(about)
            plain = re.fullmatch(r"`?(\w+)`?", about.strip())
            self._register_named(f"select * from `{plain[1]}`" if plain else about)
        table = look(self.db, text)
        if table is not None:
            write_look(table, self.settings.mode, self.settings.rows)
        return 0

    def _answer(self, text: str) -> int:
        settings = self.settings
        self._register_named(text)
        query = self.db.sql(text, confidence=settings.confidence, seed=settings.seed)
        answers = query.answers(error=settings.error, seconds=settings.seconds)
        shown: Shown = show(answers, query.stop, self._face(), query.doing)
        if shown.answer is not None and settings.mode != "table":
            write(shown.answer, settings.mode, settings.rows)
        if shown.answer is None:
            print("nearly: stopped before the first answer", file=sys.stderr)
        return INTERRUPTED if shown.interrupted else 0

    def _change(self, text: str) -> int:
        if not self.keeps:
            raise SchemaError("a statement changes tables of a catalog; give --path CATALOG, where the changes are kept")
        if self.settings.mode not in ("table", "json"):
            raise SchemaError(f"--format {self.settings.mode} is for answers; a statement is told as table (text) or json")
        self._register_named(text)
        done = self.db.execute(text)
        told = not isinstance(done, Answer) and self.settings.mode == "json"
        print(json.dumps(asdict(done), ensure_ascii=False) if told else done)
        return 0

    def _face(self) -> Face:
        if self.settings.mode != "table":
            return Silent()
        return terminal(self.settings.rows) or Lines(rows=self.settings.rows)

    def _register_named(self, text: str) -> None:
        """Make the tables known that a text names; one that was changed is taken as it is in the catalog."""
        for name in tables_asked_for(text, self.found, frozenset((*self.db.tables, *self.db.views))):
            self._register(name)

    def _register(self, name: str) -> None:
        stored = {each.lower() for each in self.db.tables}
        if name.lower() not in stored or (self.keeps and name not in self._files.values() and not self._was_changed(name)):
            self.db.register(name, self.found[name])
            self._files[name] = name

    def _was_changed(self, name: str) -> bool:
        table = self.db.table(name).info
        return table.overlaid or table.base.gone > 0 or any(commit.operation in _CHANGES for commit in self.db.history(name))


class Silent:
    """The face of a format that another program reads: nothing but the last answer is written, and that elsewhere."""

    def applies(self) -> bool:
        return True

    def show(self, answers: Iterable[Answer], doing: Doing = waiting) -> None:  # noqa: ARG002
        for _ in answers:
            pass

    def finish(self, answer: Answer) -> None:
        pass


@contextlib.contextmanager
def opened(path: Path | None, eager: bool) -> Iterator[Session]:
    """A session that is closed whatever happens, with its Spark if one had to be started; a temporary catalog is removed."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(one_voice())
        own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nearly-")))
        yield stack.enter_context(connect(path=path or own / "catalog", lazy=True, log=own / "java.log", eager=eager))


@contextlib.contextmanager
def one_voice() -> Iterator[None]:
    """Errors are told by the command, in one line; PySpark would log them as well."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)
