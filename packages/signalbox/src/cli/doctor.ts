/** `signalbox doctor` */
import type { Command } from "./command.ts";
import { CLIENT_OPTIONS, SERVE_OPTIONS } from "./options.ts";

/** `--no-reexec` and the like say how a process starts, not how the server is set up. */
const SETTINGS = SERVE_OPTIONS.filter(({ name }) => name !== "no-reexec");

export const doctor: Command = {
  words: ["doctor"],
  summary:
    "Check settings, the TLS certificate, secrets, data folder, PostgreSQL, the running server and limits of the system. The exit code is 1 if a check fails.",
  options: [...SETTINGS, ...CLIENT_OPTIONS.filter((option) => !SETTINGS.includes(option))],
  async run(context) {
    // Loads the configuration and the driver of PostgreSQL.
    const { runDoctor } = await import("./doctor/run-doctor.ts");
    return runDoctor(context);
  },
};
