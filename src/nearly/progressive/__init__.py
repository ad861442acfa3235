"""Progressive answers: estimates with bounds from the units read so far, exact at the end."""
