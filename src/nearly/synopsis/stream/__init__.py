"""Streams of changes and questions: typed rows from any Spark source, JSON records from Kafka, and what cannot be used of them."""
