"""Servers that fork before they work: what their main process did to CUDA, their workers inherit."""
