"""Plans as Spark jobs of native stages."""
