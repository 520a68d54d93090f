"""What the laws about the future count besides their cases.

A question is about one row, one view (its truth, its possible rows) or one stream (its relevance),
in one state of one document, and its answer is compared with all small futures of that state. One
case asks several, so a run reports both numbers.
"""

from __future__ import annotations

QUESTIONS = "questions"
"""The name under which a law counts its questions."""
