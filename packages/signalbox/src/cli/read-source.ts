/**
 * Reads the text of a file, or of a URL that a user names on the command line.
 *
 * A URL must use https, or point to this machine. The address of a redirect must fulfil the same rule. What is larger than the limit is
 * not read to its end.
 */
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { type CommandContext, UsageError } from "./command.ts";

const MAX_BYTES = 16 * 1024 * 1024;
const TIMEOUT_MS = 30_000;
const MAX_REDIRECTS = 3;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

export async function readSource(
  { workingFolder }: Pick<CommandContext, "workingFolder">,
  source: string,
): Promise<string> {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(source)) return readUrl(source);
  const path = resolve(workingFolder, source);
  try {
    const { size } = statSync(path);
    if (size > MAX_BYTES) throw tooLarge();
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unreadable(source, error);
  }
}

async function readUrl(source: string): Promise<string> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    let url = checkedUrl(source);
    for (let redirects = 0; ; redirects++) {
      const response = await fetch(url, { signal, redirect: "manual" });
      const location = response.headers.get("location");
      if (response.status >= 300 && response.status < 400 && location !== null) {
        await response.body?.cancel();
        if (redirects === MAX_REDIRECTS) throw new Error(`more than ${MAX_REDIRECTS} redirects`);
        url = checkedUrl(new URL(location, url).href);
        continue;
      }
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      return await readBounded(response);
    }
  } catch (error) {
    throw unreadable(source, error);
  }
}

/** Throws for a URL that others could read or change on its way. */
export function checkedUrl(text: string): URL {
  const url = new URL(text);
  const isAllowed = url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
  if (!isAllowed) throw new Error("a URL must begin with https://, or with http:// on this machine");
  if (url.username !== "" || url.password !== "") throw new Error("a URL must not contain a password");
  return url;
}

export async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
}

function tooLarge(): Error {
  return new Error(`larger than ${MAX_BYTES / 1024 / 1024} MiB`);
}

function unreadable(source: string, error: unknown): UsageError {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return new UsageError(
    `cannot read ${source}: ${error instanceof Error ? error.message : String(error)}${cause}`,
  );
}
