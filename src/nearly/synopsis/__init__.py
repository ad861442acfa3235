"""Synopses: trees of exact aggregates with sampled leaves, kept right under inserts and deletes (PASS, JanusAQP)."""
