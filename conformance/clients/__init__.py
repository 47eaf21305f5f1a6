"""What the suite drives: adapters and their protocol, correct clients, and clients with one defect each."""
