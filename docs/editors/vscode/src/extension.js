// Starts the server, and starts it again when its settings change.

"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { serverCommand, startFailure } = require("./command.js");

/** @type {LanguageClient | undefined} */
let client;
/** @type {vscode.LogOutputChannel} */
let output;
/** Starts and stops follow one another. */
let turn = Promise.resolve();

function activate(context) {
  output = vscode.window.createOutputChannel("cudalint", { log: true });
  context.subscriptions.push(
    output,
    vscode.commands.registerCommand("cudalint.restart", restart),
    vscode.commands.registerCommand("cudalint.showOutput", () => output.show()),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (["enable", "path", "interpreter", "arguments"].some((key) => event.affectsConfiguration(`cudalint.${key}`))) {
        restart();
      }
    }),
  );
  return restart();
}

function deactivate() {
  turn = turn.then(stop);
  return turn;
}

function restart() {
  turn = turn.then(stop).then(start);
  return turn;
}

async function stop() {
  const before = client;
  client = undefined;
  // One that never came up cannot be asked to end.
  await before?.stop().catch((error) => output.warn(String(error)));
}

async function start() {
  const settings = vscode.workspace.getConfiguration("cudalint");
  if (!settings.get("enable")) {
    return;
  }
  const given = {
    path: settings.get("path", "cudalint"),
    interpreter: settings.get("interpreter", ""),
    arguments: settings.get("arguments", []),
  };
  const server = serverCommand(given, vscode.workspace.workspaceFolders?.[0]?.uri.fsPath);
  output.info([server.command, ...server.args].join(" "));
  client = new LanguageClient("cudalint", "cudalint", server, {
    documentSelector: [
      { language: "python", scheme: "file" },
      { language: "python", scheme: "untitled" },
      { language: "python", scheme: "vscode-notebook-cell" },
    ],
    outputChannel: output,
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    vscode.window.showErrorMessage(startFailure(server.command, error instanceof Error ? error.message : String(error)));
  }
}

module.exports = { activate, deactivate };
