"""Ranges that hold for sure when rows are missing: predicate-constraints, cells, and the programmes over them."""

DEFAULT_SECONDS = 10.0
"""Time spent on a range when nothing else is said."""
