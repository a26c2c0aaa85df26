"""Studies on a machine that has no network: what goes there, what runs there, what comes back.

Standard library only: its other half runs on a bare machine, before anything is installed.
"""
