"""Sinks: what takes the changes of views, batch by batch."""
