"""Running text for auction documents: XMark's mixed content of words, bold, keyword and emph.

Seven tenths of an auction document is prose, so prose must be cheap to generate: words are drawn
once into a pool, and a run of words is a slice of the pool. Word frequencies fall off exponentially
with rank, as in XMark's documents. Lengths and nesting follow the shapes measured there (markup
nests twice at most, lists twice at most).

The text has no meaning, and runs of words repeat: the pool has 16,384 words.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import log

from axlog.samples.vocabulary import word

_POOL = 16_384
_LONGEST_RUN = 400
_RANKS = 12_000
_RANK_MEAN = 3_000.0

_PIECE_WORDS = 27.6  # words of a text between two marked-up spans, beyond the first
_SPAN_WORDS = 5.0  # words of a marked-up span, beyond the first
_PLAIN_TEXTS = 0.30  # share of texts without any markup
_SPANS_FALL = 1.0 / log(0.61)  # each further span is 0.61 times as likely
_NESTED_SPANS = 0.115  # share of spans that contain a span of another kind
_PARLISTS = 0.28  # share of descriptions that are lists
_INNER_PARLISTS = 0.21  # share of list items that are lists themselves

_SPANS = ("bold", "keyword", "emph")


class Prose:
    """Texts and descriptions drawn from one random sequence."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        ranks = (int(-_RANK_MEAN * log(1.0 - random())) for _ in range(_POOL))
        words = [word(min(rank, _RANKS)) for rank in ranks]
        self._pool = " ".join(words) + " "
        self._starts = tuple(accumulate((len(each) + 1 for each in words), initial=0))

    def words(self, count: int) -> str:
        """`count` words (400 at most), each followed by a space."""
        count = min(count, _LONGEST_RUN)
        first = int(self._random() * (_POOL - count))
        return self._pool[self._starts[first] : self._starts[first + count]]

    def _run(self, mean: float) -> str:
        return self.words(1 + int(-mean * log(1.0 - self._random())))

    def _span(self, kind: int, nested: bool) -> str:
        name = _SPANS[kind]
        inside = self._run(_SPAN_WORDS)
        if not nested and self._random() < _NESTED_SPANS:
            other = (kind + 1 + int(self._random() * 2)) % 3
            inside += self._span(other, nested=True) + self._run(_SPAN_WORDS)
        return f"<{name}> {inside}</{name}> "

    def text(self) -> str:
        """A `text` element with its spans."""
        random = self._random
        parts = ["<text>\n", self._run(_PIECE_WORDS)]
        if random() >= _PLAIN_TEXTS:
            for _ in range(1 + int(log(1.0 - random()) * _SPANS_FALL)):
                parts.append(self._span(int(random() * 3), nested=False))
                parts.append(self._run(_PIECE_WORDS))
        parts.append("\n</text>\n")
        return "".join(parts)

    def _parlist(self, inner: bool) -> str:
        parts = ["<parlist>\n"]
        for _ in range(2 + min(3, int(0.5 - log(1.0 - self._random())))):
            listed = not inner and self._random() < _INNER_PARLISTS
            parts.append("<listitem>\n")
            parts.append(self._parlist(inner=True) if listed else self.text())
            parts.append("</listitem>\n")
        parts.append("</parlist>\n")
        return "".join(parts)

    def description(self) -> str:
        """A `description` element: a text, or a list of texts and lists."""
        listed = self._random() < _PARLISTS
        inside = self._parlist(inner=False) if listed else self.text()
        return f"<description>\n{inside}</description>\n"
