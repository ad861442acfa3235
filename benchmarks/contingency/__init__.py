"""Parts of the benchmark of ranges over missing rows."""
