"""What every protocol's client has to survive: sections NET-1 to NET-4 of the catalogue.

A scenario is declared once. Which protocols it is run for stands in the catalogue; what differs from protocol
to protocol (the base script, the kinds of op, the settings of the fake) is in `scenarios.subjects`.
"""
