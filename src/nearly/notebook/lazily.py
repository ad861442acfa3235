"""The magic `%%nearly`, loaded when it is used first: importing nearly in a notebook takes no time."""

from __future__ import annotations

from typing import Any


def add_lazily(shell: Any) -> None:
    """Make `%%nearly` known to an IPython shell."""

    def magic(line: str, cell: str | None = None) -> Any:
        from nearly.notebook.magic import run

        return run(shell, line, cell)

    shell.register_magic_function(magic, magic_kind="line_cell", magic_name="nearly")
