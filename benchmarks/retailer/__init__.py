"""A retailer with three channels: generated tables in the shapes of TPC-DS, and queries over them."""
