import { writeFileSync } from "node:fs";
import { UsageError } from "./command.ts";

/** What an import from another product did, and how it is shown. */
export interface ImportResult {
  readonly created: readonly string[];
  /** They were there before. */
  readonly kept: readonly string[];
  readonly failed: readonly string[];
  /** They cannot be shown again, and were shown when they were issued. */
  readonly tokens?: readonly IssuedToken[];
  readonly notes: readonly string[];
  /** What belongs into the configuration file; empty for nothing. */
  readonly configuration: object;
}

/** A token in place of a key of the other product. */
export interface IssuedToken {
  readonly name: string;
  readonly key: string;
  readonly token: string;
}

export function showImport(
  { created, kept, failed, notes, configuration }: ImportResult,
  isDry: boolean,
): string {
  const list = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? "" : `${title}:\n${lines.map((line) => `  ${line}\n`).join("")}`;
  return (
    list(isDry ? "would be created" : "created", created) +
    list("already there", kept) +
    list("failed", failed) +
    list("to do, and not taken over", notes) +
    (Object.keys(configuration).length === 0
      ? ""
      : `configuration of the service (signalbox.config.json; restart it afterwards):\n${JSON.stringify(configuration, null, 2)}\n`)
  );
}

/** One thing to create. */
export interface ImportItem {
  readonly title: string;
  readonly isThere: boolean;
  create(): Promise<unknown>;
}

/** In their order. One that fails does not end the import: the others may not depend on it, and the command can be repeated. */
export async function createItems(
  items: readonly ImportItem[],
  isDry: boolean,
): Promise<Pick<ImportResult, "created" | "kept" | "failed">> {
  const created: string[] = [];
  const kept: string[] = [];
  const failed: string[] = [];
  for (const { title, isThere, create } of items) {
    if (isThere) kept.push(title);
    else if (isDry) created.push(title);
    else {
      try {
        await create();
        created.push(title);
      } catch (error) {
        failed.push(`${title}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
  return { created, kept, failed };
}

/** Into a new file. */
export function writeConfiguration(path: string, configuration: object): void {
  try {
    writeFileSync(path, `${JSON.stringify(configuration, null, 2)}\n`, { flag: "wx" });
  } catch (error) {
    throw new UsageError(`--write-config: ${error instanceof Error ? error.message : String(error)}`);
  }
}
