"""A session that is killed at any point leaves a definition with which the next one goes on, and answers that are right."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick
from tests.processes import environment
from tests.standing.test_standing import TEXT, customers, expected, orders, shown

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("seed", first_quick(range(4), 1))
def test_law_it_goes_on_after_a_kill(seed: int, tmp_path: Path) -> None:
    files = {name: str(tmp_path / f"{name}.parquet") for name in ("orders", "customers")}
    pq.write_table(orders(0, 1000), files["orders"])
    pq.write_table(customers(), files["customers"])
    pick = random.Random(seed)
    for _ in range(1 if seed == 0 else 3):
        command = [
            sys.executable,
            str(Path(__file__).with_name("killed_session.py")),
            str(tmp_path / "catalog"),
            *files.values(),
            TEXT,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment()) as process:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "ready"
            process.stdout.readline()
            time.sleep(pick.random() * 0.5)
            process.send_signal(signal.SIGKILL)
    with driver_only(tmp_path / "catalog") as db:
        assert db.standings == ("killed",)
        s = db.standing(name="killed")
        assert shown(s.answer) == expected(db)
        rows = db.table("orders").info.rows
        db.insert("orders", orders(rows, 5))
        assert shown(s.refresh()) == expected(db)
        assert s.policy.every == 0.05
