"""Cardinality constraints from content models: regular expressions over children, without order.

A `Particle` is a symbol or a group (a sequence or a choice) with its number of occurrences, as in
DTDs and XML Schemas. `formula_of` gives a cardinality constraint that all content matching the
model meets. Its `is_exact` says whether all content that meets the constraint matches the model in
some order. The constraint is exact for models without repeated groups, for `(a | b | c)*`, and for
repeated sequences of symbols such as `(a, b?, c*)+`, where numbers are compared: `|b| <= |a|`. For
other repeated groups, for numbers that only a sum could bound, and for a symbol in several places,
it is a box: a minimum and a maximum for each symbol.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from axlog.document.cardinality import All, Count, Formula, Negation, Some, symbols_of

Bounds = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Particle:
    """A symbol, or a group of particles, with its least and greatest number of occurrences."""

    least: int = 1
    most: int | None = 1
    symbol: str | None = None
    parts: tuple[Particle, ...] = ()
    is_choice: bool = False

    @property
    def symbols(self) -> list[str]:
        """The symbols in it, one for each occurrence."""
        if self.symbol is not None:
            return [self.symbol]
        return [symbol for part in self.parts for symbol in part.symbols]

    @property
    def once(self) -> Particle:
        return Particle(1, 1, self.symbol, self.parts, self.is_choice)


def leaf(symbol: str, least: int = 1, most: int | None = 1) -> Particle:
    return Particle(least, most, symbol)


def sequence(*parts: Particle, least: int = 1, most: int | None = 1) -> Particle:
    return Particle(least, most, None, parts)


def choice(*parts: Particle, least: int = 1, most: int | None = 1) -> Particle:
    return Particle(least, most, None, parts, True)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A constraint, and whether it equals the model but for the order."""

    formula: Formula
    is_exact: bool = True


WIDEST = 300
"""Children up to which each is compared with every other one: the cost is quadratic."""


def formula_of(model: Particle) -> Numbers:
    """The constraint of a content model on the numbers of children.

    >>> from axlog.document.cardinality import formula_text
    >>> formula_text(formula_of(sequence(leaf("a"), leaf("b", 0), most=None)).formula)
    '|a| >= 1 & |b| <= |a|'
    """
    if model.most == 0 or (model.symbol is None and not model.parts):
        return Numbers(All(()))
    if len(set(model.symbols)) == 1:
        return _of_one_symbol(model)
    if (model.least, model.most) == (1, 1):
        return _of_choice(model) if model.is_choice else _of_sequence(model)
    if (model.least, model.most) == (0, 1):
        inside = formula_of(model.once)
        return Numbers(_either([_none(model.symbols), inside.formula]), inside.is_exact)
    found = _of_repeated_choice(model) if model.is_choice else _of_repeated_sequence(model)
    return found or Numbers(_box(model), False)


def either(formulas: Iterable[tuple[Formula, set[str]]]) -> Formula:
    """One of several constraints, each with its symbols; the other symbols are absent."""
    given = list(formulas)
    everything = set().union(*(symbols for _, symbols in given))
    return _either([together([formula, _none(everything - symbols)]) for formula, symbols in given])


def together(formulas: Iterable[Formula]) -> Formula:
    """All of several constraints, flattened."""
    found: dict[Formula, None] = {}
    for formula in formulas:
        found.update(dict.fromkeys(formula.parts if isinstance(formula, All) else (formula,)))
    parts = tuple(found)
    return parts[0] if len(parts) == 1 else All(parts)


def _either(formulas: list[Formula]) -> Formula:
    distinct = list(dict.fromkeys(formulas))
    return distinct[0] if len(distinct) == 1 else Some(tuple(distinct))


def _none(symbols: Iterable[str]) -> Formula:
    return together(Count(symbol, "=", 0) for symbol in sorted(set(symbols)))


def within(symbol: str, bounds: Bounds) -> Formula:
    """`|symbol|` between bounds."""
    least, most = bounds
    if least == most:
        return Count(symbol, "=", least)
    if most is None:
        return Count(symbol, ">=", least)
    above = [Count(symbol, ">=", least)] if least else []
    return together([*above, Count(symbol, "<=", most)])


# Models without repetition ------------------------------------------------------------------------


def _of_one_symbol(model: Particle) -> Numbers:
    """Any model over one symbol: its bounds, exact if every number between them is possible."""
    (symbol,) = set(model.symbols)
    return Numbers(within(symbol, _bounds(model)[symbol]), _has_no_holes(model))


def _has_no_holes(model: Particle) -> bool:
    if model.symbol is not None:
        return True
    if not all(_has_no_holes(part) for part in model.parts):
        return False
    bounds = [next(iter(_bounds(part).values()), (0, 0)) for part in model.parts]
    if model.is_choice:
        bounds.sort(key=lambda each: each[0])
        reach: int | None = bounds[0][1]
        for least, most in bounds[1:]:
            if reach is not None and least > reach + 1:
                return False
            reach = None if reach is None or most is None else max(reach, most)
    if model.least == model.most:
        return True
    # n + 1 times the least number must be no more than one beyond n times the greatest
    low, high = next(iter(_bounds(model.once).values()), (0, 0))
    reached = _times(high, model.least)
    return reached is None or (model.least + 1) * low <= reached + 1


def _of_sequence(model: Particle) -> Numbers:
    if len(set(model.symbols)) < len(model.symbols):
        return Numbers(_box(model), False)
    parts = [formula_of(part) for part in model.parts]
    return Numbers(together(p.formula for p in parts), all(p.is_exact for p in parts))


def _of_choice(model: Particle) -> Numbers:
    if len(model.symbols) > WIDEST:
        return Numbers(_box(model), False)
    parts = [(formula_of(part), set(part.symbols)) for part in model.parts]
    formula = either((part.formula, symbols) for part, symbols in parts)
    return Numbers(formula, all(part.is_exact for part, _ in parts))


# Repeated groups ----------------------------------------------------------------------------------


def _of_repeated_choice(model: Particle) -> Numbers | None:
    """`(a | b | c)*` and `(a | b | c)+`: any numbers, or not all zero."""
    alone = all(part.symbol is not None and part.least <= 1 for part in model.parts)
    if not alone or model.most is not None or model.least > 1:
        return None
    symbols = sorted(set(model.symbols))
    free = [Count(symbol, ">=", 0) for symbol in symbols]
    if model.least == 0 or any(part.least == 0 for part in model.parts):
        return Numbers(together(free))
    return Numbers(_either([Count(symbol, ">=", 1) for symbol in symbols]))


def _of_repeated_sequence(model: Particle) -> Numbers | None:
    """n times a sequence of symbols, each at least 0 or 1 and at most 1 or any number of times.

    Such an n exists if no symbol that occurs at most n times occurs more often than one that occurs
    at least n times, and if nothing occurs when a symbol of the latter kind is absent (n = 0).
    """
    simple = all(
        part.symbol is not None and part.least <= 1 and part.most in (1, None)
        for part in model.parts
    )
    if not simple or not len(set(model.symbols)) == len(model.symbols) <= WIDEST:
        return None
    symbols = [part.symbol for part in model.parts if part.symbol is not None]
    always = [s for s, part in zip(symbols, model.parts, strict=True) if part.least == 1]
    at_most = [s for s, part in zip(symbols, model.parts, strict=True) if part.most == 1]
    asked: list[Formula] = [Count(symbol, ">=", model.least) for symbol in always]
    for symbol in symbols:
        others = [other for other in always if other != symbol]
        if symbol in at_most:
            if model.most is not None:
                asked.append(Count(symbol, "<=", model.most))
            asked += [_compared(symbol, other, always, at_most) for other in others]
        elif model.least == 0:
            asked += [_only_with(symbol, other) for other in others]
    mentioned = {symbol for part in asked for symbol in symbols_of(part)}
    asked += [Count(symbol, ">=", 0) for symbol in symbols if symbol not in mentioned]
    return Numbers(together(asked))


def _compared(symbol: str, other: str, always: list[str], at_most: list[str]) -> Formula:
    """`|symbol| <= |other|`, or one `=` if it holds both ways."""
    if symbol in always and other in at_most:
        return Count(symbol, "=", other) if symbol < other else All(())
    return Count(symbol, "<=", other)


def _only_with(symbol: str, other: str) -> Formula:
    return Some((Negation(Count(symbol, ">=", 1)), Count(other, ">=", 1)))


# Boxes --------------------------------------------------------------------------------------------


def _box(model: Particle) -> Formula:
    return together(within(symbol, bounds) for symbol, bounds in sorted(_bounds(model).items()))


def _bounds(model: Particle) -> dict[str, Bounds]:
    """The least and greatest number of occurrences of each symbol."""
    found: dict[str, Bounds] = {}
    if model.symbol is not None:
        found[model.symbol] = (1, 1)
    parts = [_bounds(part) for part in model.parts]
    for symbol in dict.fromkeys(symbol for part in parts for symbol in part):
        each = [part.get(symbol, (0, 0)) for part in parts]
        ends = [most for _, most in each]
        if model.is_choice:
            least, most = min(low for low, _ in each), _greatest(ends)
        else:
            least, most = sum(low for low, _ in each), _sum(ends)
        found[symbol] = (least, most)
    return {s: (low * model.least, _times(high, model.most)) for s, (low, high) in found.items()}


def _greatest(ends: list[int | None]) -> int | None:
    return None if None in ends else max(end for end in ends if end is not None)


def _sum(ends: list[int | None]) -> int | None:
    return None if None in ends else sum(end for end in ends if end is not None)


def _times(one: int | None, other: int | None) -> int | None:
    if one == 0 or other == 0:
        return 0
    return None if one is None or other is None else one * other
