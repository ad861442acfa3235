"""Workloads, measurements and simulations of automatic views."""
