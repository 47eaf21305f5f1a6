"""Fake Moleculer: a message bus that real nodes join, and fake nodes on it."""
