"""What a fleet cost at most, from what was observed of it, and what the bill says of that."""
