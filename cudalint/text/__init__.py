"""Bytes to lines: decoding, the guard for the parser, and suppression comments."""
