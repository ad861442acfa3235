"""Progressive runs: units in random order, one job of many batches, the log between task and driver."""
