"""Views: what is stored of a query, and queries over what is stored."""
