"""What a person sees in the terminal: progress, tables, status, errors."""
