"""Matching: the rows of views on messages, by generated code and shared filters."""
