"""Channels that other processes own: a peer's over HTTP, a broker's through its own client."""
