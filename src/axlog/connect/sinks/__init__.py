"""Sinks: they receive the changes of views, batch by batch."""
