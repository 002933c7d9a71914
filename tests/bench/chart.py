"""Cost against size as SVG: lines on two logarithmic scales, each with its name at its end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]

_WIDTH, _HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 96, 40, 52
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_LABEL_HEIGHT = 15


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to pixels, logarithmically, between whole decades."""

    lowest: int
    highest: int
    start: float
    end: float

    @staticmethod
    def over(values: Iterable[float], start: float, end: float) -> _Scale:
        known = [math.log10(value) for value in values]
        lowest, highest = math.floor(min(known)), math.ceil(max(known))
        return _Scale(lowest, max(highest, lowest + 1), start, end)

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - self.lowest) / (self.highest - self.lowest)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.lowest, self.highest + 1)]


def drawn(series: Mapping[str, Sequence[Point]], *, title: str, across: str, up: str) -> str:
    """The picture. All values must be positive; a series without points is left out."""
    shown = {name: points for name, points in series.items() if points}
    every = [point for points in shown.values() for point in points]
    horizontal = _Scale.over((x for x, _ in every), _LEFT, _WIDTH - _RIGHT)
    vertical = _Scale.over((y for _, y in every), _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="22" font-size="15" fill="#111111">{escape(title)}</text>',
        *_axes(horizontal, vertical, across, up),
    ]
    ends = _apart({name: vertical(points[-1][1]) for name, points in shown.items()})
    for (name, points), colour in zip(shown.items(), _cycled(len(shown)), strict=True):
        parts += _line(name, [(horizontal(x), vertical(y)) for x, y in points], ends[name], colour)
    return "\n".join([*parts, "</svg>", ""])


def _axes(horizontal: _Scale, vertical: _Scale, across: str, up: str) -> Iterable[str]:
    grid = 'stroke="#dddddd" stroke-width="1"'
    for value in horizontal.ticks():
        x = horizontal(value)
        yield f'<line x1="{x:.1f}" y1="{vertical.start}" x2="{x:.1f}" y2="{vertical.end}" {grid}/>'
        yield f'<text x="{x:.1f}" y="{vertical.start + 18}" text-anchor="middle" fill="#444444">{value:g}</text>'
    for value in vertical.ticks():
        y = vertical(value)
        yield f'<line x1="{horizontal.start}" y1="{y:.1f}" x2="{horizontal.end}" y2="{y:.1f}" {grid}/>'
        yield f'<text x="{horizontal.start - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#444444">{value:g}</text>'
    middle = (horizontal.start + horizontal.end) / 2
    yield f'<text x="{middle:.1f}" y="{_HEIGHT - 12}" text-anchor="middle" fill="#111111">{escape(across)}</text>'
    centre = (vertical.start + vertical.end) / 2
    turned = f'transform="rotate(-90 16 {centre:.1f})"'
    yield f'<text x="16" y="{centre:.1f}" text-anchor="middle" fill="#111111" {turned}>{escape(up)}</text>'


def _line(name: str, points: Sequence[Point], label: float, colour: str) -> Iterable[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    yield f'<text x="{points[-1][0] + 8:.1f}" y="{label + 4:.1f}" fill="{colour}">{escape(name)}</text>'


def _apart(wanted: Mapping[str, float]) -> dict[str, float]:
    """Where labels stand so that none covers another, from the top down."""
    placed: dict[str, float] = {}
    last = -math.inf
    for name, y in sorted(wanted.items(), key=lambda item: item[1]):
        last = max(y, last + _LABEL_HEIGHT)
        placed[name] = last
    return placed


def _cycled(count: int) -> list[str]:
    return [_COLOURS[number % len(_COLOURS)] for number in range(count)]
