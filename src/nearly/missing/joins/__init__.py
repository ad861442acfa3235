"""Ranges over inner joins of tables with missing rows."""
