"""New files: other layouts of a table, appended rows, copies of what Spark can read; complete before they count."""
