"""Text that is safe and aligned on a terminal, whatever it contains."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells

ELLIPSIS = "…"


def visible(text: str) -> str:
    """The text on one line, with every character that would move the cursor or the reading direction spelled out.

    >>> visible("a\\nb\\x1b[2J")
    'a\\\\nb\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def width(text: str) -> int:
    """Columns of a terminal that the text takes: wide characters take two, combining ones none.

    >>> width("abc"), width("日本"), width("e\\u0301")
    (3, 4, 1)
    """
    return cell_len(text)


def cut(text: str, columns: int) -> str:
    """The text, or as much of it as fits before an ellipsis.

    >>> cut("abcdef", 4), cut("日本語", 4)
    ('abc…', '日…')
    """
    return text if width(text) <= columns else chop_cells(text, columns - 1)[0] + ELLIPSIS


def pad(text: str, columns: int, right: bool) -> str:
    """The text filled with blanks to so many columns, on the left when it is aligned right."""
    blanks = " " * max(0, columns - width(text))
    return blanks + text if right else text + blanks
