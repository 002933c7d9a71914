"""What library functions do to processes and values, by the family of library."""
