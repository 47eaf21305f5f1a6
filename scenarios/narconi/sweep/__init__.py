"""What the sweep has to know of Narconi, and its base scripts."""
