"""The wire of Postgres: what psql, drivers and dashboards speak."""
