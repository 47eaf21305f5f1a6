"""NATS in the sweep: its model and its base scripts."""
