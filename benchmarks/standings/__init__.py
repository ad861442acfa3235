"""Parts of the benchmark of standing queries: data that arrives, other ways to keep states, and runs of one query."""
