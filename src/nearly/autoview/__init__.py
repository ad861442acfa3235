"""Views that choose themselves (DQM): made on the way, used where they pay, thrown out where they do not."""
