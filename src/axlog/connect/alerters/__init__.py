"""Alerters: publish the calls that a web application or a proxy sees, on a channel."""
