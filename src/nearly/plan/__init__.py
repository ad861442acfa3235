"""The plan algebra: types, expressions, nodes, and the way from SQL to a plan and back."""
