"""Where rows move between sites, and aggregates in two steps."""
