"""Serving phases seen from the operator: replicas, client, what became of every request."""
