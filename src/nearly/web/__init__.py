"""The server: one session for many clients, over HTTP with a page, and over the wire of Postgres."""
