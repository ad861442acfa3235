"""From regions to ranges: cells, the integer programmes over them, and the ends of each aggregate."""
