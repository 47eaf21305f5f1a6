"""Judging clients: scenarios are run against a client, verdicts are drawn from the journal."""
