"""Imported before modules of PySpark, where a module needs them at its top: then no other thread is still importing them."""

from nearly.engine import spark_names

spark_names.load()
