"""What is stated about missing rows, and what it means: predicates as regions of possible rows."""
