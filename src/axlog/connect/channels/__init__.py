"""Channels: in this process, at a peer over HTTP, or at a broker through its client."""
