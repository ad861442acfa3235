"""The page in a real browser: answers that converge, stop, mistakes, exports, the token, hostile names, small and large windows.

Each test leaves a picture of what it saw in the directory that NEARLY_SCREENSHOTS names, for people to look at.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nearly
from nearly.web.server import Addresses
from tests.web.converging import HOSTILE, ConvergingSession
from tests.web.serving import served

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="no Chromium with its driver (Debian: chromium-driver)")


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads: Path) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def slow() -> Iterator[tuple[ConvergingSession, Addresses]]:
    db = ConvergingSession()
    with served(db) as (_, at):
        yield db, at


def picture(driver: Any, name: str) -> None:
    """Keep what is seen now, where somebody asked for it."""
    if place := os.environ.get("NEARLY_SCREENSHOTS"):
        Path(place).mkdir(parents=True, exist_ok=True)
        driver.save_screenshot(str(Path(place) / f"{name}.png"))


class Page:
    """What a visitor does and sees."""

    def __init__(self, driver: Any, at: Addresses) -> None:
        self.driver = driver
        driver.get(at.page)
        self.until(lambda: driver.execute_script("return document.readyState") == "complete")
        self.until(lambda: "rows" in self.text("catalog"))

    def until(self, found: Callable[[], Any], seconds: float = 120.0) -> Any:
        until = time.monotonic() + seconds
        while not (value := found()):
            assert time.monotonic() < until, self.text("told") + self.text("trouble")
            time.sleep(0.03)
        return value

    def text(self, id_: str) -> str:
        return str(self.driver.execute_script("return document.getElementById(arguments[0])?.innerText ?? ''", id_))

    def ask(self, text: str, how: str = "run") -> None:
        self.set("sql", text, "input")
        self.click(how)

    def set(self, id_: str, value: str, event: str) -> None:
        script = (
            "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event(arguments[2]));"
        )
        self.driver.execute_script(script, id_, value, event)

    def click(self, id_: str) -> None:
        self.driver.execute_script("document.getElementById(arguments[0]).click()", id_)

    def count(self, selector: str) -> int:
        return int(self.driver.execute_script("return document.querySelectorAll(arguments[0]).length", selector))

    @property
    def troubles(self) -> list[str]:
        """What the console has to complain about; replies that are errors on purpose are none."""
        return [
            each["message"]
            for each in self.driver.get_log("browser")
            if each["level"] == "SEVERE" and "/api/" not in each["message"]
        ]


def test_a_query_converges_and_ends_exact(browser: Any, slow: tuple[ConvergingSession, Addresses]) -> None:
    db, at = slow
    page = Page(browser, at)
    page.ask("select city, rides, fare from rides")
    db.go.release()
    page.until(lambda: "2.0 % read" in page.text("told"))
    assert "about 2 rows missing (at most 9)" in page.text("lacks")
    wide = page.count("#chart .whisker")
    assert wide == 3 * 8
    assert page.count("td .interval") == 16
    assert "±" in page.text("answer")
    picture(browser, "early")
    db.go.release()
    page.until(lambda: "7.0 % read" in page.text("told"))
    assert page.count(".spark") == 16
    for _ in db.steps[1:]:
        db.go.release()
    page.until(lambda: page.text("told") == "exact")
    assert page.count("#chart .whisker") == 0
    assert page.count("td .interval") == 0
    assert "563,200" in page.text("answer")
    assert page.driver.execute_script("return location.hash").startswith("#q=select")
    assert "token" not in page.driver.current_url
    picture(browser, "exact")
    assert page.troubles == []


def test_stop_pause_and_good_enough(browser: Any, slow: tuple[ConvergingSession, Addresses]) -> None:
    db, at = slow
    page = Page(browser, at)
    page.ask("select day, fare from rides")
    db.go.release()
    page.until(lambda: page.count("#chart .area") == 1)
    page.click("pause")
    page.until(lambda: db.paused)
    page.click("pause")
    page.until(lambda: not db.paused)
    page.click("stop")
    page.until(lambda: "stopped: 2.0 % read" in page.text("told"))
    picture(browser, "stopped")
    page.set("goal", "6", "input")
    assert page.text("goaltext") == "± 5.0 %"
    page.ask("select total from rides")
    for _ in db.steps:
        db.go.release()
    page.until(lambda: "good enough" in page.text("told"))
    assert page.count(".card") == 3
    picture(browser, "good-enough")
    assert page.troubles == []
    while db.go.acquire(blocking=False):
        pass


def test_a_mistake_is_told_and_an_export_is_a_file(
    browser: Any, slow: tuple[ConvergingSession, Addresses], downloads: Path
) -> None:
    page = Page(browser, slow[1])
    page.ask("select * from ridez", "exact")
    page.until(lambda: "did you mean 'rides'?" in page.text("trouble"))
    picture(browser, "mistake")
    page.ask("select city, rides, fare from rides", "exact")
    page.until(lambda: page.text("told") == "exact")
    page.driver.execute_script(
        "const e = document.getElementById('export'); e.value = 'csv'; e.dispatchEvent(new Event('change'));"
    )
    (file,) = page.until(lambda: list(downloads.glob("*.csv")))
    assert file.read_text().splitlines()[1] == '"Lisbon",563200,15.61'
    assert page.troubles == []


def test_the_token_is_needed(browser: Any, slow: tuple[ConvergingSession, Addresses]) -> None:
    browser.delete_all_cookies()
    browser.get(f"http://127.0.0.1:{slow[1].port}/")
    assert "token" in browser.execute_script("return document.body.innerText")
    assert "rides" not in browser.page_source
    picture(browser, "token")
    browser.get_log("browser")  # which has the refusal


def test_hostile_names_and_values_do_no_harm(browser: Any, slow: tuple[ConvergingSession, Addresses]) -> None:
    page = Page(browser, slow[1])
    page.ask("select hostile from rides", "exact")
    page.until(lambda: page.text("told") == "exact")
    assert HOSTILE in page.text("answer")
    assert "</script><script>" in page.text("answer")
    assert page.count("img") == 0
    picture(browser, "hostile")
    assert page.driver.title == "nearly"
    assert page.troubles == []


@pytest.mark.parametrize(("width", "height"), [(375, 812), (1920, 1080)])
def test_the_page_fits_its_window(width: int, height: int, browser: Any, slow: tuple[ConvergingSession, Addresses]) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page = Page(browser, slow[1])
        page.ask("select city, rides, fare from rides", "exact")
        page.until(lambda: page.text("told") == "exact")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        picture(browser, f"window-{width}")
        assert page.troubles == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_real_session(browser: Any, db: nearly.Session) -> None:
    """Plan, details, completion, missing rows and a shared link, over tables that are there."""
    with served(db) as (_, at):
        page = Page(browser, at)
        page.ask("select city, avg(fare) as fare from rides group by city order by city")
        page.until(lambda: page.text("told") == "exact")
        page.click("explain")
        page.until(lambda: page.count("#plan .node.scan") == 1)
        assert "Read rides" in page.driver.execute_script("return document.querySelector('#plan .node.scan').textContent")
        picture(browser, "plan")
        page.driver.execute_script(
            "document.querySelector('#catalog .thing').open = true; document.querySelector('#catalog .more:last-child').click()"
        )
        page.until(lambda: "versions" in page.text("detail").lower())
        picture(browser, "details")
        page.driver.execute_script("document.getElementById('detail').close()")
        page.click("missing")
        page.until(lambda: page.count("#gaps fieldset") == 1)
        picture(browser, "missing-rows")
        page.driver.get(f"http://127.0.0.1:{at.port}/#q=select%20count(*)%20as%20n%20from%20people")
        page.until(
            lambda: page.driver.execute_script("return document.getElementById('sql').value") == "select count(*) as n from people"
        )
        page.driver.execute_script(
            "const e = document.getElementById('sql'); e.value = 'select na from people'; e.focus(); e.setSelectionRange(9, 9);"
            "e.dispatchEvent(new Event('input'));"
        )
        page.until(lambda: "name" in page.text("offers"))
        picture(browser, "completion")
        assert page.troubles == []


MOMENTS = """
const done = arguments[arguments.length - 1], values = arguments[0], home = document.createElement("div");
home.style.width = "1000px";
document.body.append(home);
import("/chart.js").then(({ Chart }) => {
  const numbers = values.map((_, place) => place);
  const columns = [{ name: "t", type: "timestamp", values }, { name: "n", type: "double", numeric: true, values: numbers }];
  new Chart(home).draw({ columns, rows: values.length, shown: values.length, exact: true }, { evolving: new Set() });
  done([...home.querySelectorAll("text")].map((each) => each.textContent).filter((each) => /\\d[-:]\\d/.test(each)));
  home.remove();
});
"""


def test_moments_on_the_chart_are_told_apart(browser: Any, slow: tuple[ConvergingSession, Addresses]) -> None:
    Page(browser, slow[1])
    days = [f"2024-01-{day:02} 00:00:00+00:00" for day in range(1, 10)]
    hours = [f"2024-01-01 {hour:02}:00:00+00:00" for hour in range(9)]
    both = [f"2024-01-0{day} {hour:02}:30:00+00:00" for day in (1, 2) for hour in (3, 9)]
    assert browser.execute_async_script(MOMENTS, days) == [f"2024-01-0{day}" for day in (1, 3, 5, 7, 9)]
    assert browser.execute_async_script(MOMENTS, hours) == [f"{hour:02}:00:00" for hour in (0, 2, 4, 6, 8)]
    assert browser.execute_async_script(MOMENTS, both)[:2] == ["2024-01-01 03:30", "2024-01-01 09:30"]
