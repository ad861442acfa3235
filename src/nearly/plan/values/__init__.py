"""Which values columns and expressions can have: ordered domains, where predicates hold, ranges of expressions, rounding."""
