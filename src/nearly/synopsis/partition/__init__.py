"""Where to cut: partitionings that keep the worst query of every leaf small."""
