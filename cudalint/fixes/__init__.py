"""Repairs: edits over the text as it was written, each tried out before it is offered."""
