"""How fast the trainer trains, beside stock loops in the same run. `make bench-gpu`."""
