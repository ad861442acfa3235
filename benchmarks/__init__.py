"""Benchmarks: each checks results as well as time, prints a table and writes JSON; `./run bench` lists them."""
