"""Scenarios for clients of Narconi."""
