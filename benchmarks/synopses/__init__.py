"""Parts of the benchmark of synopses."""
