"""The TPC-H data and its 22 queries with the validation parameters of the specification."""
