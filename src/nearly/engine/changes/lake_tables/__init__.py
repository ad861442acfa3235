"""Tables whose versions others make: Delta and Iceberg, and changes made here over them."""
