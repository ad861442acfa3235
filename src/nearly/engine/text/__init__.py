"""CSV and JSON files read without Spark, where it is proven that this gives Spark's columns, types and values."""
