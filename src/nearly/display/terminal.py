"""A table on the terminal that is drawn again in its place with every answer, over a line with a clock that always runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nearly.answer import Answer
from nearly.display.keys import ArrowKeys
from nearly.display.status import Clock, Doing, progress_bar, progress_line, remarks, waiting
from nearly.display.trail import Trail
from nearly.printing.cells import CellText
from nearly.printing.characters import pad
from nearly.printing.frame import GAP, TextColumn, TextTable
from nearly.printing.numbers import duration_text

LINES_AROUND = 6
"""Lines of the terminal that the table's frame, its status and the prompt take."""
FEWEST_ROWS = 3
DRAWN_A_SECOND = 10
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Terminal:
    """The face for a terminal: values, intervals, small curves of their past, a bar, and the time left.

    Columns that do not fit beside each other are turned to with the arrow keys, and follow below the last answer.
    """

    def __init__(self, console: Console | None = None, rows: int | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._rows = rows
        self._screen: Screen | None = None

    def applies(self) -> bool:
        """Whether somebody can watch."""
        return self._console.is_terminal

    def show(self, answers: Iterable[Answer], doing: Doing = waiting) -> None:
        """Draw each answer over the one before; the last one stays."""
        screen = self._screen = Screen(self._console.width, self._shown_rows, doing)
        drawing = Live(
            get_renderable=screen.drawn, console=self._console, refresh_per_second=DRAWN_A_SECOND, vertical_overflow="crop",
            transient=True,
        )  # fmt: skip
        with ArrowKeys(screen.turn) as keys, drawing as live:
            for answer in answers:
                screen.take(answer)
                if len(screen.pages) > 1 and not answer.exact:
                    keys.listen()
                    screen.turning = keys.listening
                live.transient = False  # there is something that stays, also after an error
                live.refresh()
            screen.over = True

    def finish(self, answer: Answer) -> None:
        """The columns that found no room; an answer that was stopped on the way is marked as such."""
        for frame in self._screen.pages[1:] if self._screen is not None else ():
            self._console.print(_table(frame))
        if not answer.exact:
            self._console.print(Text(f"stopped at an estimate: {answer.state}", style="yellow"))

    @property
    def _shown_rows(self) -> int:
        room = max(self._console.height - LINES_AROUND, FEWEST_ROWS)
        return room if self._rows is None else min(self._rows, room)


@dataclass(slots=True)
class Screen:
    """What is on the terminal now. It is drawn from a thread of its own, so an answer is taken in one step."""

    width: int
    rows: int
    doing: Doing
    over: bool = False
    turning: bool = False
    """Whether other columns can be turned to."""
    pages: tuple[TextTable, ...] = ()
    """All columns of the newest answer, as many at a time as there is room for."""
    page: int = 0
    clock: Clock = field(default_factory=Clock)
    _trail: Trail = field(init=False)
    _newest: tuple[Answer, TextTable] | None = None

    def __post_init__(self) -> None:
        self._trail = Trail(self.rows)

    def take(self, answer: Answer) -> None:
        """An answer has come."""
        self.clock.tick(answer)
        self._trail.add(answer)
        frame = TextTable.of(answer.table, answer.low, answer.high, self._trail.rows)
        frame = frame.with_histories(self._trail.sparklines(len(frame.columns)))
        if not answer.exact:
            frame = frame.no_narrower(self._newest[1] if self._newest is not None else None)
        self._newest = (answer, frame)
        self.pages = frame.wrapped(self.width)

    def turn(self, step: int) -> None:
        """Other columns are asked for."""
        self.page = min(max(self.page + step, 0), len(self.pages) - 1)

    def drawn(self) -> RenderableType:
        """The newest answer over the line that tells where the query stands at this moment."""
        if self._newest is None:
            return self._beginning()
        answer, whole = self._newest
        page = 0 if self.over or answer.exact else min(self.page, len(self.pages) - 1)
        frame = self.pages[page]
        left_out = replace(frame, hidden_columns=len(whole.columns) - len(frame.columns)).notes
        turned = (f"columns {page + 1}/{len(self.pages)} with ← →",) if self.turning and not (self.over or answer.exact) else ()
        notes = (*turned, *(f"... {note}" for note in left_out), *remarks(answer))
        parts: list[RenderableType] = [_table(frame)]
        if notes:
            parts.append(Text(", ".join(notes), style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*parts, self._status(answer))

    def _beginning(self) -> Text:
        """What is done before there is an answer, how long already, and when it is expected to end."""
        seconds = self.clock.running
        work = self.doing()
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(SPINNER[int(seconds * DRAWN_A_SECOND) % len(SPINNER)], style="cyan")
        line.append(f" {work.what} ... {duration_text(seconds)}")
        if work.seconds is not None and work.seconds > seconds:
            line.append(f", about {duration_text(work.seconds - seconds)} left", style="dim")
        return line

    def _status(self, answer: Answer) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(progress_bar(answer.progress), style="green" if answer.exact else "cyan")
        line.append(f" {progress_line(answer, self.clock.elapsed if answer.exact or self.over else self.clock.running)}")
        left = self.clock.still_left
        if answer.exact:
            line.append(" ✓", style="bold green")
        elif left is not None and not self.over:
            line.append(f", about {duration_text(left)} left", style="dim")
        return line


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
