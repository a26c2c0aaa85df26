"""Content-addressed objects: the seam `Store` and its implementations."""
