"""Samples of plans by tickets: which rows of the tables below are needed for a sample of the rows above."""
