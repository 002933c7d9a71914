// Which program is the server, and what it is given. Knows nothing of the editor, so that it can be tested without one.

"use strict";

const os = require("node:os");
const path = require("node:path");

// As -m cudalint, but for the folder that is checked, in which -m would look for modules first.
const FROM_ELSEWHERE = [
  "import sys",
  "sys.path[:] = [place for place in sys.path if place]",
  "from cudalint.__main__ import main",
  "sys.exit(main())",
].join("; ");

/**
 * @typedef {{path: string, interpreter: string, arguments: string[]}} Settings
 * @param {Settings} settings
 * @param {string | undefined} folder the first workspace folder
 * @returns {{command: string, args: string[]}}
 */
function serverCommand(settings, folder) {
  const interpreter = resolved(settings.interpreter, folder);
  const given = settings.arguments.map((one) => resolved(one, folder));
  if (interpreter !== "") {
    return { command: interpreter, args: ["-c", FROM_ELSEWHERE, "server", ...given] };
  }
  return { command: resolved(settings.path, folder) || "cudalint", args: ["server", ...given] };
}

/** A path with what it may begin with replaced, and blanks around it gone. */
function resolved(text, folder) {
  const place = text.trim();
  if (folder !== undefined && place.startsWith("${workspaceFolder}")) {
    return path.join(folder, place.slice("${workspaceFolder}".length));
  }
  return place === "~" || place.startsWith("~/") ? path.join(os.homedir(), place.slice(1)) : place;
}

/** What to say when the server does not start, in a line that helps. */
function startFailure(command, reason) {
  const said = `cudalint does not start (${command}): ${reason.replace(/^cudalint: error: /, "")}`;
  // cudalint says by itself what it lacks.
  const advice = said.includes("pip install") ? "" : ". Install it with: pip install 'cudalint[server]'";
  return `${said}${advice}, or set cudalint.path or cudalint.interpreter.`;
}

module.exports = { FROM_ELSEWHERE, serverCommand, startFailure };
