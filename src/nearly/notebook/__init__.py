"""Answers in a notebook; importing it makes `Query.live` use it there."""

from nearly.display.show import register
from nearly.notebook.face import Notebook

__all__ = ["Notebook"]

register(Notebook())
