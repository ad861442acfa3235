"""Tables at rest: files, footers, blocks, layouts, the catalog and its durable commits. Knows neither Spark nor DuckDB."""
