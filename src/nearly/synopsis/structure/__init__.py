"""What a tree holds: columns as coordinates, rows as numbers, the tree of cells, exact aggregates, extreme values, stored rows."""
