"""From text to a syntax tree: queries, statements, goals and parameters, and what must not stand there."""
