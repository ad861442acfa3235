"""The logs of tables that others keep: Delta and Iceberg."""
