"""A table on the terminal that is drawn again in its place with every answer."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nearly.answer import Answer
from nearly.display.status import Clock, progress_bar, progress_line, remarks
from nearly.display.trail import Trail
from nearly.printing.cells import CellText
from nearly.printing.characters import pad
from nearly.printing.frame import GAP, TextColumn, TextTable
from nearly.printing.numbers import duration_text

LINES_AROUND = 6
"""Lines of the terminal that the table's frame, its status and the prompt take."""
FEWEST_ROWS = 3


class Terminal:
    """The face for a terminal: values, intervals, small curves of their past, a bar, and the time left."""

    def __init__(self, console: Console | None = None, rows: int | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._rows = rows

    def applies(self) -> bool:
        """Whether somebody can watch."""
        return self._console.is_terminal

    def show(self, answers: Iterable[Answer]) -> None:
        """Draw each answer over the one before; the last one stays."""
        clock = Clock()
        trail = Trail(self._shown_rows)
        with Live(console=self._console, auto_refresh=False, vertical_overflow="crop") as live:
            live.update(Text("reading ...", style="dim"), refresh=True)
            for answer in answers:
                clock.tick(answer)
                trail.add(answer)
                live.update(self._drawn(answer, trail, clock), refresh=True)

    def finish(self, answer: Answer) -> None:
        """An answer that was stopped on the way is marked as such; its table stands already."""
        if not answer.exact:
            self._console.print(Text(f"stopped at an estimate: {answer.state}", style="yellow"))

    @property
    def _shown_rows(self) -> int:
        room = max(self._console.height - LINES_AROUND, FEWEST_ROWS)
        return room if self._rows is None else min(self._rows, room)

    def _drawn(self, answer: Answer, trail: Trail, clock: Clock) -> RenderableType:
        frame = TextTable.of(answer.table, answer.low, answer.high, trail.rows)
        frame = frame.with_histories(trail.sparklines(len(frame.columns)))
        frame = frame.fitted(self._console.width)
        notes = (*(f"... {note}" for note in frame.notes), *remarks(answer))
        parts: list[RenderableType] = [_table(frame)]
        if notes:
            parts.append(Text(", ".join(notes), style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*parts, _status(answer, clock))


def _table(frame: TextTable) -> Table:
    """Columns as far apart as the frame reckons with; one of the blanks between them is the rule's."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, GAP - 1, 0, 0), show_edge=False, header_style="bold")
    for column in frame.columns:
        table.add_column(Text(pad(column.name, column.width, column.numeric)), no_wrap=True, overflow="ellipsis")
    drawn = [[_cell(column, each) for each in column.cells] for column in frame.columns]
    for row in zip(*drawn, strict=True):
        table.add_row(*row)
    return table


def _cell(column: TextColumn, cell: CellText) -> Text:
    """The parts of a cell in their colours; blanks before them, because the name may be wider than all of them."""
    values, intervals, histories = column.widths
    text = Text(pad(cell.value, values, column.numeric), style="dim italic" if cell.null else "")
    if intervals:
        text.append(" " + pad(cell.interval, intervals, right=False), style="cyan")
    if histories:
        text.append(" " + pad(cell.history, histories, right=False), style="blue")
    if column.numeric:
        text.pad_left(column.width - text.cell_len)
    return text


def _status(answer: Answer, clock: Clock) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(progress_bar(answer.progress), style="green" if answer.exact else "cyan")
    line.append(f" {progress_line(answer, clock.elapsed)}")
    if answer.exact:
        line.append(" ✓", style="bold green")
    elif clock.left is not None:
        line.append(f", about {duration_text(clock.left)} left", style="dim")
    return line
