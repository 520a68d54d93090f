"""The writer of Python code: lines in blocks, fresh names, and the constants of the code."""

from __future__ import annotations

from axlog.evaluate.generated_code import function_of


class CodeWriter:
    """Lines of code at a depth of blocks; `constants` is the scope that the code runs in."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.numbers = 0
        self.constants: dict[str, object] = {}

    def line(self, text: str) -> None:
        """Add a line to the current block."""
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem: str) -> str:
        """An unused name."""
        self.numbers += 1
        return f"{stem}{self.numbers}"

    def constant(self, stem: str, thing: object) -> str:
        """The name of a constant in the code."""
        name = self.fresh(stem.upper() + "_")
        self.constants[name] = thing
        return name

    def open(self, text: str) -> None:
        """Start a block with its first line."""
        self.line(text)
        self.depth += 1

    def close(self, levels: int = 1) -> None:
        """End blocks; an empty one gets a `pass`."""
        for _ in range(levels):
            last = self.lines[-1]
            if last.startswith("    " * (self.depth - 1)) and not last.startswith(
                "    " * self.depth
            ):
                self.line("pass")
            self.depth -= 1

    def compiled(self, name: str, source: str) -> object:
        """The function of this name that the source defines."""
        return function_of(name, source, self.constants)
