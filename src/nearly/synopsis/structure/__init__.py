"""What a tree holds: rows as numbers, the tree of cells, exact aggregates, extreme values, the sample, and the search in it."""
