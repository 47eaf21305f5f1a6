"""How the echo joins chaos: what its application does, and nothing else."""
