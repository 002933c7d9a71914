"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { FROM_ELSEWHERE, serverCommand, startFailure } = require("../src/command.js");

const manifest = JSON.parse(fs.readFileSync(path.join(__dirname, "../package.json"), "utf8"));
const properties = manifest.contributes.configuration.properties;
const defaults = {
  path: properties["cudalint.path"].default,
  interpreter: properties["cudalint.interpreter"].default,
  arguments: properties["cudalint.arguments"].default,
};

test("without settings the command on the PATH is the server", () => {
  assert.deepEqual(serverCommand(defaults, "/work"), { command: "cudalint", args: ["server"] });
});

test("a path may begin with the folder or the home", () => {
  const own = { ...defaults, path: " ${workspaceFolder}/.venv/bin/cudalint ", arguments: ["--no-cache"] };
  assert.deepEqual(serverCommand(own, "/work"), { command: "/work/.venv/bin/cudalint", args: ["server", "--no-cache"] });
  assert.equal(serverCommand({ ...defaults, path: "~/bin/cudalint" }, undefined).command, path.join(os.homedir(), "bin/cudalint"));
});

test("an interpreter goes before a path", () => {
  const own = { ...defaults, interpreter: "${workspaceFolder}/.venv/bin/python", arguments: ["--config", "${workspaceFolder}/c.toml"] };
  assert.deepEqual(serverCommand(own, "/work"), {
    command: "/work/.venv/bin/python",
    args: ["-c", FROM_ELSEWHERE, "server", "--config", "/work/c.toml"],
  });
});

test("a failure says what to do", () => {
  assert.match(startFailure("cudalint", "spawn cudalint ENOENT"), /ENOENT.*pip install 'cudalint\[server\]'/);
  assert.equal(
    startFailure("cudalint", "cudalint: error: the language server needs pygls: pip install 'cudalint[server]'"),
    "cudalint does not start (cudalint): the language server needs pygls: pip install 'cudalint[server]', or set cudalint.path or cudalint.interpreter.",
  );
});

test("what is read is what can be set, and an untrusted folder sets no program", () => {
  const source = fs.readFileSync(path.join(__dirname, "../src/extension.js"), "utf8");
  const read = [...source.matchAll(/settings\.get\("(\w+)"/g)].map((found) => `cudalint.${found[1]}`);
  const settable = Object.keys(properties).filter((key) => key !== "cudalint.trace.server");
  assert.deepEqual(read.sort(), settable.sort());
  const restricted = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
  assert.deepEqual([...restricted, "cudalint.enable"].sort(), settable.sort());
  const commands = manifest.contributes.commands.map((one) => one.command);
  assert.ok(commands.every((name) => source.includes(`registerCommand("${name}"`)));
});
