"""Names that belong to secrets, and values that are masked because of them.

Passwords, tokens, keys, signatures, cookies and sessions are recognised by their names: of headers,
of parameters in the query of an address, of members of JSON, of fields of forms, and of elements
and attributes of XML. The name stays, the value becomes `***`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, urlencode

MASK = "***"
_SECRET = re.compile(
    r"auth|cookie|token|secret|passw|pwd|passphrase|credential|session|signature|api[-_]?key"
    r"|private|card[-_]?number|cvv|cvc|iban|otp\b|\bpin\b|\bsig\b",
    re.IGNORECASE,
)


class Masks:
    """Decides by its name whether a value is a secret.

    >>> masks = Masks(shown=["session-kind"], hidden=["customer"])
    >>> [masks.hides(name) for name in ("X-Api-Key", "Session-Kind", "Customer", "Accept")]
    [True, False, True, False]
    """

    def __init__(self, shown: Iterable[str] = (), hidden: Iterable[str] = ()) -> None:
        """`shown` are names that are no secrets, `hidden` more names that are."""
        self._shown = {name.lower() for name in shown}
        self._hidden = {name.lower() for name in hidden}

    def hides(self, name: str) -> bool:
        """Whether the values under a name are masked."""
        lowered = name.rpartition("}")[2].lower()
        if lowered in self._shown:
            return False
        return lowered in self._hidden or _SECRET.search(lowered) is not None

    def value(self, name: str, value: str) -> str:
        """The value as it may be shown."""
        return MASK if self.hides(name) else value

    def query(self, text: str) -> str:
        """The query of an address, or a form, with its secrets masked.

        >>> Masks().query("id=7&access_token=abc")
        'id=7&access_token=***'
        """
        pairs = parse_qsl(text, keep_blank_values=True)
        masked = [(name, self.value(name, value)) for name, value in pairs]
        return urlencode(masked, quote_via=quote, safe="*") if pairs else ""
