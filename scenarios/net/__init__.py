"""What every protocol's client has to survive: sections NET-1 to NET-4 of the catalogue.

What differs from protocol to protocol (the base script, the kinds of op, the settings of the fake) is in
``_scripts``; a scenario is declared once for each protocol that it holds for.
"""
