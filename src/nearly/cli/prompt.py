"""The prompt of the shell: prompt-toolkit with nearly's completion, a history file, and statements of several lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from nearly.cli.completing import Completing
from nearly.cli.splitting import is_complete
from nearly.cli.workplace import Workplace

PROMPT, CONTINUED = "nearly> ", "   ...> "


class Prompt:
    """Reads from a terminal: Enter ends a statement that has its semicolon, and begins a new line elsewhere."""

    stops_at_errors = False

    def __init__(self, place: Workplace, history: Path | None) -> None:
        kept: History = InMemoryHistory() if history is None else FileHistory(str(history))
        self._session: PromptSession[str] = PromptSession(
            history=kept, completer=_Completions(Completing(place)), complete_while_typing=False, multiline=True,
            key_bindings=_keys(), auto_suggest=AutoSuggestFromHistory(), enable_open_in_editor=True,
            prompt_continuation=lambda *_: CONTINUED,
        )  # fmt: skip

    def read(self) -> str:
        return self._session.prompt(PROMPT)


class _Completions(Completer):
    """nearly's completion as prompt-toolkit asks for it."""

    def __init__(self, completing: Completing) -> None:
        self._completing = completing

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Any:  # noqa: ARG002  the library's own
        for word in self._completing.words(document.text, document.cursor_position):
            yield Completion(word.text, start_position=-word.replaces, display_meta=word.kind)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        text = event.current_buffer.text
        if not text.strip() or text.lstrip().startswith(".") or is_complete(text):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    return keys
