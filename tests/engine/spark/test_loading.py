"""PySpark is loaded as a whole before a thread needs it: its modules break when two threads import them at once."""

from __future__ import annotations

import subprocess
import sys

CONNECTS = """
import nearly, tempfile
with tempfile.TemporaryDirectory() as work:
    db = nearly.connect(path=work)
    from pyspark.sql.datasource import DataSource  # while Spark starts in the background
    import nearly.engine.spark.kafka_source, nearly.synopsis.catalogue
    db.close()
"""
THREADS = """
import threading
from nearly.engine import spark_names
troubles = []
def use(name):
    try:
        if name == "kafka":
            import nearly.engine.spark.kafka_source
        else:
            getattr(spark_names, name)
    except Exception as trouble:
        troubles.append(trouble)
threads = [threading.Thread(target=use, args=(name,)) for name in ("launch_gateway", "kafka", "SparkSession", "arrow_udf")]
for each in threads: each.start()
for each in threads: each.join()
assert not troubles, troubles
"""


def _runs(text: str) -> None:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_user_may_import_pyspark_while_spark_starts() -> None:
    _runs(CONNECTS)


def test_threads_that_need_it_at_once() -> None:
    for _ in range(3):
        _runs(THREADS)
