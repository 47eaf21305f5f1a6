"""Mutants of the reference clients: each has one defect.

They prove that the scenarios can fail: a scenario that kills no mutant is not done.
"""
