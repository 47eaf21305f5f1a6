"""The search for faults that a client does not survive: `systematic` at every frame, `random` by a seed."""
