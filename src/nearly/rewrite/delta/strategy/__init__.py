"""How each operator is maintained, and if not by changes, why."""
