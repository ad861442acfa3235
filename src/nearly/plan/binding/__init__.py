"""From syntax trees to typed plans: names, scopes, clauses."""
