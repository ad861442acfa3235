"""Answers in a notebook, with a stand-in for IPython: it is no dependency."""

from __future__ import annotations

import sys
import types
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from nearly.answer import Answer
from nearly.display.show import face_here, show
from nearly.display.status import Clock
from nearly.display.trail import Point, Trail
from nearly.notebook import Notebook
from nearly.notebook.face import page
from nearly.notebook.plot import HEIGHT, WIDTH, drawing
from tests.fixtures.answers import by_city, by_city_exactly


@dataclass
class Output:
    """What IPython's display returns: an output that can be replaced."""

    pages: list[str] = field(default_factory=list)

    def update(self, shown: str) -> None:
        self.pages.append(shown)


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> Output:
    """Makes this process look like a notebook's kernel."""
    output = Output()
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shell = types.SimpleNamespace(kernel=object())
    vars(ipython)["get_ipython"] = lambda: shell

    def show_first(shown: str, display_id: bool) -> Output:
        assert display_id
        output.update(shown)
        return output

    vars(display).update(HTML=str, display=show_first)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return output


def test_in_a_notebook_the_output_is_replaced_with_each_answer(output: Output) -> None:
    assert isinstance(face_here(), Notebook)
    shown = show(iter([by_city(0.25, 100), by_city(0.5, 50), by_city_exactly()]), lambda: None)
    assert shown.answer is not None
    assert shown.answer.exact
    assert len(output.pages) == 4
    assert "25 % read" in output.pages[1]
    assert '<img alt="s (Oslo, 10): its value' in output.pages[2]
    assert "<svg" not in output.pages[2]
    assert "exact ✓" in output.pages[3]
    for each in output.pages:
        ET.fromstring(each)


def test_the_plain_shell_of_ipython_is_a_terminal(output: Output) -> None:
    vars(sys.modules["IPython"])["get_ipython"] = object
    assert not isinstance(face_here(), Notebook)


def test_elsewhere_the_notebook_does_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not Notebook().applies()


@pytest.mark.parametrize("rows", [0, 1])
def test_data_is_text_and_never_markup(rows: int) -> None:
    table = pa.table({"<script>": pa.array(["<b>&"] * rows, pa.string()), "n": pa.array([None] * rows, pa.int64())})
    answer = Answer.exactly(table, "native")
    text = page(answer, followed(answer), Clock())
    assert "<script>" not in text
    assert "<b>" not in text
    assert ET.fromstring(text).find(".//th").text == "<script>"  # type: ignore[union-attr]


def test_the_plot_stays_in_its_frame() -> None:
    points = (Point(0.1, 5.0, -3.0, 11.0), Point(0.5, 7.0, None, None), Point(1.0, 6.0, 6.0, 6.0))
    tree = ET.fromstring(drawing(points, "a < b"))
    found = [tuple(map(float, pair.split(","))) for shape in tree.iter() for pair in shape.get("points", "").split()]
    assert len(found) == 2 + 2 + 3
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in found)


def test_a_constant_has_a_plot() -> None:
    assert "nan" not in drawing((Point(0.1, 0.0, 0.0, 0.0), Point(1.0, 0.0, 0.0, 0.0)), "zero").lower()


def followed(*answers: Answer) -> Trail:
    trail: Any = Trail(rows=10)
    for answer in answers:
        trail.add(answer)
    return trail
