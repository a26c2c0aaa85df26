"""Machines that run workers: the seam `Host` and its implementations."""
