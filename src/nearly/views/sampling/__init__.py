"""Answers of a stale view: a sample of it is cleaned, and tells how far all of it is off (SVC)."""
