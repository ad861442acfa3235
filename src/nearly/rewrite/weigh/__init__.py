"""The tail of a progressive query over weighted rows: estimates, replicates, evidence."""
