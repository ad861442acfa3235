"""Changes of TPC-H tables, and views over them that are kept fresh."""
