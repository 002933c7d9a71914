"""The JSON schema of the configuration, against what the configuration takes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
import tomli

from cudalint import config, config_schema

Run = Callable[..., "subprocess.CompletedProcess[str]"]

VALID = (
    "",
    'select = ["ALL"]\nextend-select = ["CUD1", "CUD501"]\nignore = []',
    'ignore = ["C", "CUD"]',
    'per-file-ignores = {"tests/*" = ["CUD201"], "a" = []}',
    'exclude = ["old", "[ab", "x/**/y"]\nextend-exclude = []\nforce-exclude = true',
    *(f'target-version = "{one}"' for one in ("py310", "3.9", " 3.10 - py313 ")),
    *(f'target-version = "{one}"' for one in ("3.08", "3.16", "py30", "py301", "3.10-3.10")),
    *(f'platform = "{one}"' for one in ("linux", "darwin", "win32")),
    *(f'fail-on = "{one}"' for one in ("note", "warning", "error")),
    'severity = {CUD501 = "note", ALL = "error", CUD = "warning"}',
    "limits = {}",
    "limits = {file-size = 256_000_000, depth = 200, steps = 1_000_000, seconds = 86_400, context-files = 1}",
    "models = []\nextra-paths = []\nextend-safe-fixes = []",
    'extend-unsafe-fixes = ["CUD4"]\ncache-dir = "x"\nbaseline = "known.json"',
)
INVALID = (
    "unknown = 1",
    'select = "ALL"',
    "select = [1]",
    'select = ["CUD999"]',
    'ignore = ["E501"]',
    'ignore = {a = "CUD1"}',
    'per-file-ignores = ["CUD201"]',
    'per-file-ignores = {"a" = "CUD201"}',
    'per-file-ignores = {" " = ["CUD201"]}',
    'per-file-ignores = {"a" = ["X"]}',
    'exclude = [""]',
    'exclude = ["  "]',
    'extend-exclude = ["a\\u0000b"]',
    'exclude = "old"',
    'force-exclude = "yes"',
    *(f'target-version = "{one}"' for one in ("", "310", "3.17", "py4", "3.10-", "3.10-3.11-3.12")),
    *(f'target-version = "{one}"' for one in ("py399", "3.100", "3.016", "3.99", "py3")),
    "target-version = 3.12",
    'platform = "windows"',
    'fail-on = "fatal"',
    "limits = []",
    "limits = {time = 3}",
    *(f"limits = {{{one}}}" for one in ("file-size = 0", "depth = 201", "steps = 1_000_001", "seconds = 86_401")),
    *(f"limits = {{{one}}}" for one in ("depth = true", 'steps = "many"', "seconds = 0.5")),
    'severity = {CUD999 = "note"}',
    'severity = {CUD101 = "off"}',
    "severity = {CUD101 = 1}",
    'severity = "note"',
    'models = "a.toml"',
    'extra-paths = "lib"',
    "extend-safe-fixes = [true]",
    "cache-dir = 1",
    "baseline = []",
)


def shipped() -> str:
    return (resources.files("cudalint") / "cudalint.schema.json").read_text(encoding="utf-8")


def test_what_is_shipped_is_what_is_printed(run: Run) -> None:
    assert run("config", "--schema").stdout == shipped()
    assert json.loads(shipped()) == config_schema.schema()


def test_it_is_a_schema_and_knows_every_key() -> None:
    schema = config_schema.schema()
    jsonschema.Draft7Validator.check_schema(schema)
    assert sorted(schema["properties"]) == sorted(config.KEYS)
    assert all(part["description"] for part in schema["properties"].values())


def takes(folder: Path, text: str) -> bool:
    path = folder / "pyproject.toml"
    path.write_text(f"[tool.cudalint]\n{text}\n", encoding="utf-8")
    try:
        config.load([str(folder)])
    except config.ConfigError:
        return False
    return True


@pytest.mark.parametrize(("texts", "expected"), [(VALID, True), (INVALID, False)])
def test_schema_and_configuration_agree(tmp_path: Path, texts: tuple[str, ...], expected: bool) -> None:
    validator = jsonschema.Draft7Validator(config_schema.schema())
    schema = {text: validator.is_valid(tomli.loads(text)) for text in texts}
    assert schema == dict.fromkeys(texts, expected)
    assert {text: takes(tmp_path, text) for text in texts} == schema


def test_defaults_are_those_of_the_configuration() -> None:
    schema = config_schema.schema()["properties"]
    default = config.Config()
    assert tuple(schema["exclude"]["default"]) == default.exclude
    assert schema["platform"]["default"] == default.platform
    assert schema["fail-on"]["default"] == default.fail_on.value
    assert schema["force-exclude"]["default"] is default.force_exclude


def test_another_validator_reads_it(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(shipped(), encoding="utf-8")
    (tmp_path / "good.toml").write_text("\n".join(VALID[1:4:2]), encoding="utf-8")
    (tmp_path / "bad.toml").write_text(INVALID[3], encoding="utf-8")
    for name, code in (("good.toml", 0), ("bad.toml", 1)):
        check = [sys.executable, "-m", "check_jsonschema", "--no-cache", "--schemafile", str(schema), name]
        done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr


def test_config_shows_other_settings_or_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\nfail-on = "note"\n', encoding="utf-8")
    (tmp_path / "other.toml").write_text('fail-on = "error"\n', encoding="utf-8")
    for options, shown in ((), "note"), (("--config", "other.toml"), "error"), (("--isolated",), "warning"):
        assert f'fail-on = "{shown}"\n' in run("config", *options).stdout
    done = run("config", "--isolated", "--config", "other.toml")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
