/** The PostgreSQL servers that hold the histories of instances in a cluster: the setting `agents.stores`. */
import { Secret } from "../core/secret.ts";
import { ConfigError } from "../core/config-error.ts";

const URL = /^postgres(ql)?:\/\//;

/** The names of environment variables among the entries: they hold passwords, which agents must not see. */
export function storeVariables(entries: readonly string[]): readonly string[] {
  return entries.filter((entry) => !URL.test(entry));
}

/** The connection strings. Default: the database of the control plane; none without PostgreSQL. */
export function readAgentStores(
  entries: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  databaseUrl: Secret | undefined,
): readonly Secret[] {
  if (entries.length === 0) return databaseUrl === undefined ? [] : [databaseUrl];
  return entries.map((entry) => new Secret(URL.test(entry) ? entry : readVariable(entry, environment)));
}

function readVariable(name: string, environment: Readonly<Record<string, string | undefined>>): string {
  const value = environment[name] ?? "";
  if (URL.test(value)) return value;
  // The value may contain a password.
  const found = value === "" ? "none" : "another text";
  throw new ConfigError(`agents.stores: expected a postgres:// URL in the variable ${name}, found ${found}`);
}
