// Starts the server, and starts it again when its settings change.

"use strict";

const readline = require("node:readline");
const { setTimeout: pause } = require("node:timers/promises");
const vscode = require("vscode");
const { CloseAction, ErrorAction, LanguageClient } = require("vscode-languageclient/node");
const { serverCommand, startFailure } = require("./command.js");

/** @type {LanguageClient | undefined} */
let client;
/** @type {vscode.LogOutputChannel} */
let output;
const PATIENCE_MS = 300;
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
  let isUp = false;
  let complaint = "";
  const starting = new LanguageClient("cudalint", "cudalint", server, {
    documentSelector: [
      { language: "python", scheme: "file" },
      { language: "python", scheme: "untitled" },
      { language: "python", scheme: "vscode-notebook-cell" },
    ],
    outputChannel: output,
    stdioOptions: {
      stdout: byLine((line) => output.info(line)),
      stderr: byLine((line) => {
        complaint = line;
        output.error(line);
      }),
    },
    // One that never came up is not started again and again: what it said is shown once, below.
    initializationFailedHandler: () => false,
    errorHandler: {
      error: (...told) => (isUp ? usual.error(...told) : { action: ErrorAction.Continue, handled: true }),
      closed: () => (isUp ? usual.closed() : { action: CloseAction.DoNotRestart, handled: true }),
    },
  });
  const usual = starting.createDefaultErrorHandler();
  client = starting;
  try {
    await starting.start();
    isUp = true;
  } catch (error) {
    client = undefined;
    // What it said may come after its end.
    await pause(PATIENCE_MS);
    const reason = complaint || (error instanceof Error ? error.message : String(error));
    vscode.window.showErrorMessage(startFailure(server.command, reason));
  }
}

function byLine(told) {
  return (input) => readline.createInterface({ input, crlfDelay: Infinity, historySize: 0 }).on("line", told);
}

module.exports = { activate, deactivate };
