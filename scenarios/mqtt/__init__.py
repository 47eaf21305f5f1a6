"""MQTT 3.1.1: its scenarios, and what the judge knows of it."""
