"""Makes the pictures of the documents from the real faces over generated data: `python docs/pictures.py`.

The page needs Chromium with its driver (Debian: chromium-driver) and the extra `serve`; the terminal needs nothing.
"""

from __future__ import annotations

import asyncio
import io
import queue
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI

import nearly
from nearly.display.status import waiting
from nearly.display.terminal import Screen
from nearly.web.server import Addresses, Server, ServerSettings

PICTURES = Path(__file__).with_name("pictures")
CITIES = ["Berlin", "Lisbon", "Madrid", "Oslo", "Paris", "Porto", "Rome", "Vienna"]
FILES, ROWS = 400, 50_000
QUESTION = """\
select city, count(*) as rides, round(avg(fare), 2) as fare, round(sum(fare * tip), 0) as tips
from rides group by city order by rides desc"""
SIZE = (1280, 1240)


ASK = """
const set = (id, value) => { const e = document.getElementById(id); e.value = value; e.dispatchEvent(new Event('input')); };
set('sql', arguments[0]); document.getElementById('run').click();
"""
BROWSER = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", f"--window-size={SIZE[0]},{SIZE[1]}")


def write_rides(home: Path) -> None:
    """Rides of eight cities, in files whose rows differ a little."""
    home.mkdir()
    for part in range(FILES):
        seed = np.random.default_rng(part)
        city = seed.choice(8, ROWS, p=seed.dirichlet(4.0 * np.array([10, 22, 15, 7, 11, 18, 12, 5])))
        fare = seed.lognormal(2.3 + city / 20, 0.9, ROWS)
        columns = {"city": pa.array(CITIES).take(pa.array(city)), "fare": fare, "tip": seed.random(ROWS) / 4}
        pq.write_table(pa.table(columns), home / f"{part:02}.parquet")


@contextmanager
def session() -> Iterator[nearly.Session]:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        write_rides(home / "rides")
        with nearly.connect(path=home / "catalog", lazy=True, eager=True) as db:
            db.register("rides", str(home / "rides"))
            yield db


def terminal(db: nearly.Session) -> None:
    """What `nearly sql` shows shortly before the exact answer."""
    console = Console(record=True, width=92, file=io.StringIO(), force_terminal=True)
    screen = Screen(92, 20, waiting)
    for answer in db.sql(QUESTION):
        if answer.exact:
            break
        screen.take(answer)
    console.print("[bold]$[/] nearly sql -f tips.sql --data lake\n", highlight=False)
    console.print(screen.drawn())
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)  # fonts of elsewhere are not loaded
    text = console.export_svg(title="nearly", theme=DIMMED_MONOKAI, code_format=plain, unique_id="nearly")
    (PICTURES / "terminal.svg").write_text(text.replace("Fira Code, monospace", "ui-monospace, monospace"))


@contextmanager
def served(db: nearly.Session) -> Iterator[Addresses]:
    server = Server(db, ServerSettings(port=0, wire_port=None))
    told: queue.Queue[Addresses] = queue.Queue()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(told.put)), daemon=True)
    thread.start()
    try:
        yield told.get(timeout=60)
    finally:
        server.stop()
        thread.join(20)


def page(db: nearly.Session) -> None:
    """The page with an answer on the way to the exact one, light and dark."""
    with served(db) as at, browser() as driver:
        for theme in ("light", "dark"):
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
            driver.get(at.page)
            until(lambda: "rides" in text(driver, "catalog"))
            driver.execute_script(ASK, QUESTION)
            until(lambda: "% read" in text(driver, "told"))
            driver.execute_script("document.getElementById('stop').click()")
            until(lambda: "stopped" in text(driver, "told"))
            time.sleep(1.0)  # what moves on the page comes to rest
            driver.save_screenshot(str(PICTURES / f"page-{theme}.png"))


@contextmanager
def browser() -> Iterator[Any]:
    from selenium import webdriver  # noqa: PLC0415  which the terminal's picture does not need

    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    for argument in BROWSER:
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def text(driver: Any, id_: str) -> str:
    return str(driver.execute_script("return document.getElementById(arguments[0]).innerText", id_))


def until(found: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


def main(asked: list[str]) -> int:
    """Make the pictures that are asked for, or all."""
    PICTURES.mkdir(exist_ok=True)
    makers = {"terminal": terminal, "page": page}
    with session() as db:
        for name in asked or makers:
            makers[name](db)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
