"""Tables that change: rows inserted, deleted and updated, found and written by the driver; what changed between two versions."""
