"""The format of a source's messages: XML, or JSON by the rule of `document/json_messages.py`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from axlog.connect.kinds import Options
from axlog.document.json_messages import messages_of_text, xml_of_text

ELEMENT = Field(
    default=None,
    pattern=r"^[A-Za-z_][\w.\-]*$",
    description="With `format: json`, the name of a message's element (default: the only key of an"
    " object that has one, otherwise item).",
)


class FormatOptions(Options):
    """Options of sources whose messages are XML or JSON."""

    format: Literal["xml", "json"] = Field(
        default="xml", description="The format of the messages: XML, or JSON objects."
    )
    element: str | None = ELEMENT

    def as_xml(self, content: bytes, name: str | None = None) -> bytes:
        """Return one message as XML."""
        if self.format == "xml":
            return content
        return xml_of_text(content, self.element, name).encode()

    def messages(self, content: bytes, name: str | None = None) -> list[bytes]:
        """Return the messages of a content as XML: of a JSON array, one for each item."""
        if self.format == "xml":
            return [content]
        return [made.encode() for made in messages_of_text(content, self.element, name)]
