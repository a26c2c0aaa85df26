"""Small-table tasks, replay conversations, retention probes, and how they are dealt to roles."""
