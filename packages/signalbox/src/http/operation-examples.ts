/**
 * An example of every operation of the management interface: what a client sends, the line that sends it, and what is answered. They are recorded by
 * `npm run docs` from calls of a running service, and a test runs them again; `operation-examples.json` is not edited by hand.
 */
import { readFileSync } from "node:fs";

export interface OperationExample {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: unknown;
  /** A line of a program that uses `@signalbox/client`. */
  readonly line: string;
  /** Why a server that is alone refuses it. */
  readonly refused?: string;
  readonly status: number;
  readonly contentType: string;
  /** JSON, or text of another type. Absent: binary. */
  readonly answer?: unknown;
}

export const EXAMPLES_FILE = new URL("./operation-examples.json", import.meta.url);

/** By operation, such as `GET /accounts`. Read with the first request for the description, which most servers never get. */
export function readOperationExamples(): Readonly<Record<string, OperationExample>> {
  return JSON.parse(readFileSync(EXAMPLES_FILE, "utf8")) as Record<string, OperationExample>;
}

interface CodeSample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

/** In the form that viewers of OpenAPI documents show (`x-codeSamples`). */
export function codeSamples(method: string, path: string, example: OperationExample): CodeSample[] {
  return [
    { lang: "Shell", label: "curl", source: curlOf(method, path, example) },
    { lang: "TypeScript", label: "@signalbox/client", source: `await ${example.line};` },
  ];
}

function curlOf(
  method: string,
  path: string,
  { params, query, body, contentType }: OperationExample,
): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, one]),
  );
  const asked = pairs.length === 0 ? "" : `?${new URLSearchParams(pairs).toString()}`;
  const isPlain = method === (body === undefined ? "GET" : "POST");
  const parts = [
    `curl -s${contentType === "text/event-stream" ? "N" : ""}${isPlain ? "" : ` -X ${method}`} ${quoted(`http://127.0.0.1:8787${filled}${asked}`)}`,
    '-H "authorization: Bearer $SIGNALBOX_TOKEN"',
    ...(contentType === "text/event-stream" ? ["-H 'accept: text/event-stream'"] : []),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'", `-d ${quoted(jsonText(body))}`]),
    ...(contentType === "application/x-tar" ? ["-o backup.tar"] : []),
  ];
  return parts.join(" \\\n  ");
}

/** On one line if a reader sees it whole. */
function jsonText(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length > 80 ? JSON.stringify(value, null, 2) : line;
}

/** A word of a POSIX shell. */
function quoted(text: string): string {
  return /^[\w./:@%-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
