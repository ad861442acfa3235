"""Columns of a table as coordinates, and conditions on them as boxes."""
