"""The command line `nearly`: one module per command."""
