"""Answers as they come, on a terminal or in plain lines; other faces register with `show`."""
