"""The small program form that the machine runs: libcst trees lowered to plain nodes with ordinals."""
