"""The engine of launches: how workers are started, what they are sent, and what their end means."""
