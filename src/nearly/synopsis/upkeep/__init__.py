"""Keeping a tree right: changes, the archive, when and how it is planned again, and what survives a crash."""
