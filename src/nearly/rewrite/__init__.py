"""Passes over plans: one file, one function, one concern each; `rewrite.passes` holds their order."""
