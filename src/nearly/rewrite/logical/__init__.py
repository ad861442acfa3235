"""Passes that every query goes through: what is asked stays the same and costs less."""
