"""The cut of a progressive query: what is computed per unit, and what above."""
