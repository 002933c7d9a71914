"""What a forked worker inherits from its parent, and a fresh process lacks: the proof that there is nothing."""
