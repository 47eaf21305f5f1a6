"""Versions of a client: which of them changed a verdict, and the verdicts of all beside each other."""
