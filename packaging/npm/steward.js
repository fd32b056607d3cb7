#!/usr/bin/env node
"use strict";
// The command `steward`, which becomes the program of this platform's package.

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { findSteward } = require("./index.js");

let program;
try {
  program = findSteward();
} catch (error) {
  console.error(`steward: ${error.message}`);
  process.exit(127);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`steward: ${error.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
