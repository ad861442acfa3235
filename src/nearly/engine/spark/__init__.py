"""Spark itself: the session, its process and Java, Spark SQL as a kernel, streams."""
