"""What clients of Narconi share, in each language."""
