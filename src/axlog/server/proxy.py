"""Serves an alerting proxy, until it is interrupted (`axlog proxy`)."""

from __future__ import annotations

import uvicorn

from axlog.connect.alerters.asgi import Application
from axlog.server.application import Settings
from axlog.server.server import listening


def serve_proxy(app: Application, host: str, port: int) -> None:
    """Serve an application at an address; raises AX807 if the address cannot be bound."""
    bound = listening(Settings(host=host, port=port))
    config = uvicorn.Config(app, log_level="warning", server_header=False, date_header=False)
    try:
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        bound.close()
