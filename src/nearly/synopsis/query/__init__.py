"""Reading a tree: estimates with intervals, bounds that are certain, answers."""
