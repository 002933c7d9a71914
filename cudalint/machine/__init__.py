"""The abstract machine: runs programs on process states and values, and reports what would go wrong."""
