"""Rows that keep coming: streams and topics that a table follows, and records that could not be taken."""
