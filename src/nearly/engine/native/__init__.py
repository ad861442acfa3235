"""DuckDB in this process, which may be the driver or a Spark worker: how it reads a table, its functions, its memory."""
