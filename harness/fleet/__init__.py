"""Hosts under one deadline: the seam `FleetSource` and its implementations."""
