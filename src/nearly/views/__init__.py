"""Materialised views: queries whose rows are kept, as tables of their own that follow the tables they are made of."""
