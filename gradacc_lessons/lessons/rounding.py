"""What float64 rounding leaves of a difference that is none, and how such a difference is told."""

ROUNDING = 1e-12
"""Relative differences up to this are what float64 leaves: it keeps 16 digits, and sums lose two or three."""


def percent(relative: float, decimals: int = 0) -> str:
    """A relative difference for people: what float64 rounding leaves is named, not given as digits."""
    return "rounding only" if relative <= ROUNDING else f"{100 * relative:.{decimals}f} %"
