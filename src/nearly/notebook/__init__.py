"""Answers in a notebook; importing it makes `Query.live` use it there, and `%%nearly` known."""

import sys

from nearly.display.show import register
from nearly.notebook.face import Notebook

__all__ = ["Notebook"]

register(Notebook())


def _add_magic() -> None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and hasattr(shell, "register_magic_function"):
        from nearly.notebook.lazily import add_lazily

        add_lazily(shell)


_add_magic()
