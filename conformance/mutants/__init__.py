"""Small correct clients of our own, one per protocol, and mutants of them: each has one defect.

They prove that the scenarios can fail: a scenario that kills no mutant is not done.
"""
