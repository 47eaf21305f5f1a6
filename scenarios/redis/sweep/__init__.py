"""Redis in the sweep: what its frames mean, and its base scripts."""
