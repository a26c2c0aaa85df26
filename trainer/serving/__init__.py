"""Answering requests over HTTP: cached rows, the engine that batches them, and the ASGI app."""
