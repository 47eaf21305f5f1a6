"""How the echo joins the sweep: a model and base scripts, and nothing else."""
