"""Populations and trials for the coverage benchmark: what intervals do over many random orders of reading."""
