"""Tables and cases on which both kernels must agree."""
