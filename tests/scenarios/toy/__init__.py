"""How the toy joins the scenarios: a subject, and nothing else."""
