"""What is told of the seeds' ideas that nearly has in another form, or not at all: figures for or against each.

- extremes: an interval of the greatest value by a generalised extreme value distribution (WAKE, section 6), on tame and nasty data.
- frames: what frames made of one frame would save if they shared the rows that were read (WAKE, section 2), beyond first units.
- pairs: a join of two large tables by two samples, or with the smaller one read whole first (WAKE's growth above one).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.special import gamma

import nearly
from benchmarks.report import Record, print_summary, print_table, write_json
from nearly.rewrite.stream import cut_query

Floats = NDArray[np.float64]
UNITS, UNIT_ROWS = 512, 600
CONFIDENCE = 0.95
PARTS = ("extremes", "frames", "pairs")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="run bench left_out", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)} (default all)")
    parser.add_argument("--seeds", type=int, default=400, help="orders of reading for each figure of extremes (default 400)")
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the tables of frames and pairs (default 4,000,000)")
    parser.add_argument("--tiny", action="store_true", help="few seeds and rows")
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options = parser.parse_args(arguments)
    if options.tiny:
        options.seeds, options.rows = 20, 200_000
    summary: dict[str, float | None] = {}
    rows: list[Record] = []
    for part in options.parts.split(","):
        made = {"extremes": extremes, "frames": frames, "pairs": pairs}[part](options)
        print_table(list(made[0]), made)
        print()
        rows += [{"part": part, **row} for row in made]
        summary |= _summary(part, made)
    print_summary(summary)
    if options.json:
        write_json(options.json, {"benchmark": "left_out", "seeds": options.seeds, "rows": options.rows}, summary, rows)
    return 0


def _summary(part: str, rows: Sequence[Record]) -> dict[str, float | None]:
    name, choose = {"extremes": ("covered", min), "frames": ("saved_at_most", max), "pairs": ("times_sooner", max)}[part]
    values = [float(row[name] or 0) for row in rows]
    return {f"{part}_{choose.__name__}_{name}": choose(values)}


def _measures(rng: np.random.Generator) -> dict[str, Floats]:
    """Measures as tables have them; the last ones have a greatest value that nothing else hints at."""
    n = UNITS * UNIT_ROWS
    one_row = rng.normal(10, 3, n)
    one_row[rng.integers(n)] = 100.0
    late = np.concatenate([rng.normal(10, 3, n - n // 40), rng.normal(20, 3, n // 40)])
    return {
        "normal": rng.normal(10, 3, n), "uniform": rng.uniform(0, 1, n), "exponential": rng.exponential(1, n),
        "lognormal": rng.lognormal(0, 1.5, n), "pareto 2.2": rng.pareto(2.2, n), "cents": rng.gamma(2, 30, n).round(2),
        "whole 1 to 50": rng.integers(1, 51, n).astype(float), "a stretch at the end": late, "one row": one_row,
    }  # fmt: skip


def extremes(options: argparse.Namespace) -> list[Record]:
    """How often [greatest value read, upper end of the fit] holds the greatest value of all."""
    found: list[Record] = []
    for name, values in _measures(np.random.default_rng(5)).items():
        tops = values.reshape(UNITS, UNIT_ROWS).max(axis=1)
        for read in (16, 48, 160):
            held = seen = 0
            for seed in range(options.seeds):
                sample = np.random.default_rng((seed, read)).permutation(tops)[:read]
                held += tops.max() <= max(sample.max(), upper_end(sample, UNITS - read))
                seen += tops.max() == sample.max()
            shares = (held / options.seeds, seen / options.seeds)
            found.append({"measure": name, "read": read / UNITS, "covered": shares[0], "seen_already": shares[1]})
    return found


def upper_end(tops: Floats, unread: int) -> float:
    """What the greatest value of so many unread units stays below with the confidence, by a fit to those of the units read.

    L-moments give the parameters of the generalised extreme value distribution (Hosking, Wallis and Wood 1985).
    """
    ordered, n = np.sort(tops), len(tops)
    place = np.arange(n)
    b0, b1, b2 = ordered.mean(), np.mean(place / (n - 1) * ordered), np.mean(place * (place - 1) / ((n - 1) * (n - 2)) * ordered)
    first, second, third = b0, 2 * b1 - b0, 6 * b2 - 6 * b1 + b0
    if second <= 0:
        return float(ordered[-1])
    c = 2 / (3 + third / second) - np.log(2) / np.log(3)
    shape = 7.8590 * c + 2.9554 * c**2
    if abs(shape) < 1e-6:
        scale = second / np.log(2)
        return float(first - 0.5772 * scale - scale * np.log(-np.log(CONFIDENCE) / unread))
    scale = second * shape / ((1 - 2.0**-shape) * gamma(1 + shape))
    middle = first - scale * (1 - gamma(1 + shape)) / shape
    return float(middle + scale / shape * (1 - (-np.log(CONFIDENCE) / unread) ** shape))


def _write(directory: Path, name: str, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    (directory / name).mkdir()
    for number in range(64):
        n = rows // 64
        table = pa.table({
            f"{name}_key": rng.integers(0, 200_000, n), f"{name}_group": rng.integers(0, 8, n), f"{name}_x": rng.gamma(2, 10, n),
            f"{name}_y": rng.normal(5, 2, n), f"{name}_n": rng.integers(0, 100, n),
        })  # fmt: skip
        pq.write_table(table, directory / name / f"part-{number:02}.parquet")


@contextmanager
def _tables(sizes: dict[str, int]) -> Iterator[nearly.Session]:
    """A session with made-up tables of these numbers of rows, each in 64 files."""
    with tempfile.TemporaryDirectory(prefix="nearly-left-out-") as made, ExitStack() as stack:
        db = stack.enter_context(nearly.connect(lazy=True, path=Path(made) / "catalog", eager=True))
        for seed, (name, rows) in enumerate(sizes.items()):
            _write(Path(made), name, rows, seed)
            db.register(name, str(Path(made) / name))
        yield db


def frames(options: argparse.Namespace) -> list[Record]:
    """First answers of frames made of one table, the first time, and again when first units are in memory.

    What a frame would save if it took over what another one read is at most the time of reading in the latter.
    """
    with _tables({"t": options.rows}) as db:
        makers: dict[str, Callable[[], nearly.Frame]] = {
            "agg": lambda: db.table("t").agg(s=nearly.sum("t_x"), by="t_group"),
            "filter, agg": lambda: db.table("t").filter("t_n > 50").agg(a=nearly.avg("t_y"), n=nearly.count()),
            "agg, agg": lambda: db.table("t").agg(s=nearly.sum("t_x"), by="t_key").agg(a=nearly.avg("s"), n=nearly.count()),
            "map, agg": lambda: db.table("t").map("t_group", z="t_x * t_y").agg(s=nearly.sum("z"), by="t_group"),
        }
        return [_asked_again(name, make) for name, make in makers.items()]


def _asked_again(name: str, make: Callable[[], nearly.Frame]) -> Record:
    seconds, reading = [], []
    for _ in range(8):
        frame = make()
        began = time.perf_counter()
        answer = frame.get()
        seconds.append(time.perf_counter() - began)
        reading.append(float(answer.stats.get("batch_seconds", 0.0)))
        frame.stop()
        time.sleep(0.4)  # first units are loaded in the background
    again, read = statistics.median(seconds[4:]), statistics.median(reading[4:])
    return {"frame": name, "first_ms": 1000 * seconds[0], "again_ms": 1000 * again, "reading_ms": 1000 * read,
            "saved_at_most": read / again}  # fmt: skip


def pairs(options: argparse.Namespace) -> list[Record]:
    """The first answer of a join of two tables, with both sampled, however small they are, and with the smaller one read whole."""
    cut_query.SAMPLED_ROWS = 0
    found: list[Record] = []
    for ratio in (1, 2, 4, 10):
        with _tables({"one": options.rows, "two": options.rows // ratio}) as db:
            found.append(_both_ways(db, ratio))
    return found


def _both_ways(db: nearly.Session, ratio: int) -> Record:
    text = "select count(*) as n, sum(one_x * two_y) as s from one join two on one_key = two_key"
    began = time.perf_counter()
    exact = float(db.sql(text).exact().table["s"][0].as_py())
    record: dict[str, str | float | None] = {"sizes": f"1:{ratio}", "exact_s": time.perf_counter() - began}
    for way, stream in (("sampled", None), ("whole", ["one"])):
        seconds, off, widths = [], [], []
        for seed in range(5):
            query = db.sql(text, seed=seed, stream=stream)
            began = time.perf_counter()
            answer = next(iter(query))
            seconds.append(time.perf_counter() - began)
            query.stop()
            off.append(abs(float(answer.table["s"][0].as_py()) / exact - 1))
            widths.append(answer.error)
        record |= {
            f"{way}_s": statistics.median(seconds),
            f"{way}_off": statistics.median(off),
            f"{way}_error": statistics.median(widths),
        }
    record["times_sooner"] = float(record["whole_s"] or 0) / float(record["sampled_s"] or 1)
    return record


if __name__ == "__main__":
    sys.exit(main())
