"""Changes by e-mail: one message per change, or a digest at intervals.

A digest collects changes for `every` seconds from the first. Waiting changes are in the `state`
file, so a restart loses nothing. A message's id is derived from the ids of its changes and is the
same when it is sent again: delivery is at least once, and mail programs show it once. Values of
rows go into the text, never into headers other than the subject, and there without line breaks.
"""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from threading import RLock, Timer
from typing import Any, Literal

from pydantic import Field

from axlog.connect.kinds import LocalPath, Options, Origin, Seconds, Secret, SinkKind
from axlog.connect.sinks.envelopes import change_id
from axlog.connect.sinks.feeds import filled
from axlog.connect.sinks.file_state import State
from axlog.errors import ConnectorError
from axlog.views.change import Change

_MOST = 500  # changes listed in one digest


class MailOptions(Options):
    """Options of `mail`."""

    server: str = Field(description="The mail server.")
    port: int = Field(default=587, ge=1, le=65535, description="Its port.")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="The encryption of the connection."
    )
    user: Secret | None = Field(default=None, description="The user name.")
    password: Secret | None = Field(default=None, description="Their password.")
    sender: str = Field(description="The sender.")
    to: list[str] = Field(min_length=1, description="The recipients.")
    subject: str = Field(
        default="{view}: {op} {row}", description="The subject; {column} is filled in."
    )
    every: Seconds | None = Field(
        default=None, gt=0, description="Interval of digests (default: one mail per change)."
    )
    state: LocalPath | None = Field(
        default=None, description="File that stores waiting and sent changes."
    )
    timeout: Seconds = Field(
        default=30.0, gt=0, description="Timeout for each step with the server."
    )


class MailSink:
    """Sends changes to mailboxes."""

    exactly_once = False

    def __init__(self, options: MailOptions, origin: Origin) -> None:
        self.options = options
        self.run = origin.run
        self._lock = RLock()
        path = None if options.state is None else origin.path(options.state)
        self._state = State(path, origin.run)
        self._timer: Timer | None = None
        self.error: ConnectorError | None = None
        if self._state.kept:
            self._plan()

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Send a batch's changes, or add them to the digest."""
        with self._lock:
            if self._state.has(batch):
                return
            entries = [self._entry(batch, at, change) for at, change in enumerate(changes)]
            if self.options.every is not None:
                self._state.keep(batch, [*(self._state.kept or ()), *entries])
                self._plan()
                return
            if entries:
                self._send([self._message(one["subject"], [one]) for one in entries])
            self._state.keep(batch, [])

    def _entry(self, batch: int, at: int, change: Change) -> dict[str, Any]:
        row = change.row.to_dict()
        text = ", ".join(f"{column}: {value}" for column, value in row.items()) or "it holds"
        fields = {**row, "op": change.op, "view": change.view, "row": text}
        return {
            "id": change_id(self.run, batch, at),
            "subject": filled(self.options.subject, fields),
            "line": f"{change.view}: {change.op} {text}",
        }

    def _plan(self) -> None:
        """Send the digest if its interval has passed."""
        if self._timer is None and self._state.kept and self.options.every is not None:
            self._timer = Timer(self.options.every, self._digest_later)
            self._timer.daemon = True
            self._timer.start()

    def _digest_later(self) -> None:
        with self._lock:
            self._timer = None
            try:
                self.send_digest()
            except ConnectorError as error:  # it stays, and is sent with the next one
                self.error = error
            self._plan()

    def send_digest(self) -> None:
        """Send the waiting changes now."""
        with self._lock:
            waiting = self._state.kept or []
            if waiting:
                subject = f"{len(waiting)} changes" if len(waiting) > 1 else waiting[0]["subject"]
                self._send([self._message(subject, waiting)])
                self._state.keep(self._state.batch, [])
                self.error = None

    def _message(self, subject: str, changes: list[dict[str, Any]]) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = " ".join(subject.split())[:200]
        message["From"] = self.options.sender
        message["To"] = ", ".join(self.options.to)
        message["Message-ID"] = f"<{changes[0]['id']}.{len(changes)}@axlog>"
        message["Auto-Submitted"] = "auto-generated"
        lines = [" ".join(change["line"].splitlines()) for change in changes[:_MOST]]
        if len(changes) > _MOST:
            lines.append(f"and {len(changes) - _MOST} more")
        message.set_content("\n".join(lines) + "\n")
        return message

    def _send(self, messages: list[EmailMessage]) -> None:
        options = self.options
        try:
            with self._connected() as server:
                if options.security == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if options.user is not None and options.password is not None:
                    server.login(options.user.reveal(), options.password.reveal())
                for message in messages:
                    server.send_message(message)
        except (smtplib.SMTPException, OSError) as error:
            reason = str(error)[:200]
            raise ConnectorError("AX859", f"the mail server refuses: {reason}") from None

    def _connected(self) -> smtplib.SMTP:
        given = (self.options.server, self.options.port)
        if self.options.security == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(*given, timeout=self.options.timeout, context=context)
        return smtplib.SMTP(*given, timeout=self.options.timeout)

    def close(self) -> None:
        """Send the waiting changes; those that cannot be sent stay in the state file."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            try:
                self.send_digest()
            except ConnectorError as error:
                self.error = error


MAIL = SinkKind("mail", MailOptions, MailSink, "Changes by e-mail, one by one or as a digest.")
