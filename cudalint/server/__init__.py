"""A language server: what editors show of a project while it is written.

Two processes: one speaks the protocol and never waits, the other analyses and is ended when its answer is no longer
wanted.
"""
