/** What the sources of credentials share: the requests, the environment that describes the machine, and files that change. */
import { readFileSync } from "node:fs";
import type { Clock } from "../../../core/clock.ts";
import type { AskServer } from "./ask-server.ts";

export interface SourceParts {
  readonly ask: AskServer;
  readonly clock: Clock;
  /** The variables by which clouds describe a machine to their clients. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export type Environment = SourceParts["environment"];

/** Undefined for an empty variable, too. */
export function variable(environment: Environment, name: string): string | undefined {
  return environment[name] || undefined;
}

export function requireVariable(environment: Environment, name: string): string {
  const value = variable(environment, name);
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

/** The content of the file, read for every exchange, because clusters replace it. `name` says which file it is; its path stays here. */
export function readTextFile(path: string, name: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw new Error(`the file of ${name} cannot be read`, { cause });
  }
}

/** The file that a variable names. */
export function readVariableFile(environment: Environment, name: string): string {
  return readTextFile(requireVariable(environment, name), name);
}
