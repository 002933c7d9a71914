"""Threads, processes and pools, and what passes between them."""
