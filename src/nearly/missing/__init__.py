"""GroupRanges that hold for sure when rows are missing: predicate-constraints, cells, and the programmes over them."""
