"""Expressions as SQL of the two kernels: `native` (DuckDB) and `spark`."""
