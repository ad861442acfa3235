"""Tables on storage and the kernels that compute over their blocks; the only place that knows Spark."""
