"""The verbs of `python -m lab`."""
