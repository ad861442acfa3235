"""Pure mathematics that the subsystems share: no Spark, no SQL."""
