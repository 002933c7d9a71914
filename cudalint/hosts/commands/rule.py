"""``cudalint rule``: the pages of rules."""

from __future__ import annotations

import click

from cudalint import config, proof, rules
from cudalint.config import ConfigError
from cudalint.hosts import streams
from cudalint.hosts.commands.words import selectors
from cudalint.hosts.exits import Exit
from cudalint.rules.base import Rule
from cudalint.structs import asdict


@click.command(short_help="Print the page of a rule, or a list of rules.")
@click.argument("code", metavar="[RULE]", required=False, shell_complete=selectors)
@click.option("--all", "every", is_flag=True, help="Print all rules.")
@click.option("--output-format", metavar="FORMAT", default="text", help="text or json.")
def rule(code: str | None, every: bool, output_format: str) -> int:
    """Print the page of a rule, by its code or name; of a prefix of codes (CUD1), the list of its rules."""
    if output_format not in ("text", "json"):
        hint = config.nearest(output_format, ("text", "json"))
        raise ConfigError(f"unknown output format {output_format!r}: expected text or json{hint}")
    if every == (code is not None):
        raise click.UsageError("name one rule, or --all; cudalint rule CUD lists them")
    codes = rules.codes() if code is None else _known_rules(code)
    is_list = code is not None and len(codes) > 1
    if output_format == "text" and is_list:
        streams.put("".join(map(_row, map(rules.rule, codes))))
        return Exit.CLEAN
    if output_format == "text":
        streams.put("\n\n".join(f"{rules.page(known)}\n\n{proof.section(known)}".rstrip() for known in codes) + "\n")
        return Exit.CLEAN
    import json

    described = [_described(known) for known in codes]
    streams.put(json.dumps(described if every or is_list else described[0], indent=2, ensure_ascii=False) + "\n")
    return Exit.CLEAN


def _known_rules(text: str) -> tuple[str, ...]:
    """The rule of a code or a name, or those that a prefix names."""
    code = text.upper()
    if code in rules.codes():
        return (code,)
    names = {known.name: known.code for known in rules.registry().values()}
    if text.lower() in names:
        return (names[text.lower()],)
    found = tuple(known for known in rules.codes() if code and known.startswith(code))
    if not found:
        hint = config.nearest(code, rules.codes()) or config.nearest(text.lower(), names)
        raise ConfigError(f"unknown rule {text!r}{hint}; cudalint rule CUD lists them")
    return found


def _row(rule: Rule) -> str:
    return f"{rule.code}  {rule.severity.value:<7}  {rule.name}: {rule.summary}\n"


def _described(code: str) -> dict[str, object]:
    known = rules.rule(code)
    return {
        "code": known.code,
        "name": known.name,
        "severity": known.severity.value,
        "summary": known.summary,
        "explanation": rules.page(code),
        "evidence": [asdict(known_proof) for known_proof in proof.proofs(code)],
    }
