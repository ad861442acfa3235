"""Keeping a tree right: changes and streams of them, their log, when and how it is planned again, and what survives a crash."""
