"""Launching: admission to a fleet, its placements one after another, its end."""
