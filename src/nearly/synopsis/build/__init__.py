"""Making a tree in two passes over a table, and writing it down."""
