"""The documents: the reference is that of the code, every page is in the site, and no link leads nowhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import nearly

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_reference_is_that_of_the_code() -> None:
    """Renew it with `python docs/reference.py`."""
    assert (DOCS / "api.md").read_text() == script("reference").page()


def test_every_public_name_is_in_the_reference() -> None:
    named = {name for names in script("reference").ROOMS.values() for name in names}
    assert set(nearly.__all__) - {"__version__"} <= named


def test_every_page_is_in_the_site() -> None:
    told = (ROOT / "mkdocs.yml").read_text()
    assert yaml.safe_load(told)["exclude_docs"] == "*.py"
    assert [page.name for page in DOCS.glob("*.md") if f": {page.name}\n" not in told] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_leads_nowhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)\s#]+)", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    assert [each for each in targets if not (page.parent / each).exists()] == []
