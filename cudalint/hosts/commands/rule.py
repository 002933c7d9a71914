"""``cudalint rule``: the pages of rules."""

from __future__ import annotations

import dataclasses

import click

from cudalint import config, proof, rules
from cudalint.config import ConfigError
from cudalint.hosts import streams
from cudalint.hosts.checks import Exit


@click.command()
@click.argument("code", required=False)
@click.option("--all", "every", is_flag=True, help="Print all rules.")
@click.option("--output-format", metavar="FORMAT", default="text", help="text or json.")
def rule(code: str | None, every: bool, output_format: str) -> int:
    """Print the page of a rule."""
    if output_format not in ("text", "json"):
        hint = config.nearest(output_format, ("text", "json"))
        raise ConfigError(f"unknown output format {output_format!r}: expected text or json{hint}")
    if every == (code is not None):
        raise click.UsageError("name one rule, or --all")
    codes = rules.codes() if code is None else (_known_rule(code),)
    if output_format == "text":
        streams.put("\n\n".join(f"{rules.page(known)}\n\n{proof.section(known)}".rstrip() for known in codes) + "\n")
        return Exit.CLEAN
    import json

    described = [_described(known) for known in codes]
    streams.put(json.dumps(described if every else described[0], indent=2, ensure_ascii=False) + "\n")
    return Exit.CLEAN


def _known_rule(code: str) -> str:
    known = code.upper()
    if known not in rules.codes():
        raise ConfigError(f"unknown rule {code!r}{config.nearest(known, rules.codes())}")
    return known


def _described(code: str) -> dict[str, object]:
    known = rules.rule(code)
    return {
        "code": known.code,
        "name": known.name,
        "severity": known.severity.value,
        "summary": known.summary,
        "explanation": rules.page(code),
        "evidence": [dataclasses.asdict(known_proof) for known_proof in proof.proofs(code)],
    }
