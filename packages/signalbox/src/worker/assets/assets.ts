/** Static files of a worker: the binding `ASSETS`, and the files that are served before the worker is asked. */
import { type FileHandle, open as openFile } from "node:fs/promises";
import { matchesGlob } from "../../core/glob.ts";
import type { WranglerAssets } from "../settings/wrangler-file.ts";
import { knowLength } from "../body-lengths.ts";
import { AssetFolder, type AssetFile } from "./asset-folder.ts";
import { contentTypeOf } from "./content-types.ts";
import { findPage } from "./find-page.ts";
import { parseRange } from "./range.ts";

export type AssetRules = Pick<WranglerAssets, "html_handling" | "not_found_handling" | "run_worker_first">;

export class Assets {
  readonly #folder: AssetFolder;
  readonly #rules: AssetRules;

  constructor(folder: string, rules: AssetRules) {
    this.#folder = new AssetFolder(folder);
    this.#rules = rules;
  }

  /** The answer of the binding: always a response, as `not_found_handling` says. */
  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    if (request.method !== "GET" && request.method !== "HEAD")
      return new Response(null, { status: 405, headers: { allow: "GET, HEAD" } });
    return (await this.#find(request)) ?? this.#missing(request);
  };

  /** The file to send before the worker is asked; null: the worker answers. */
  async answer(request: Request): Promise<Response | null> {
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    const { run_worker_first: first, not_found_handling: missing } = this.#rules;
    // Files are found by the decoded path: a rule that looked at the path as it was sent would miss `/%61dmin` for `/admin`.
    const path = decodePath(new URL(request.url).pathname);
    if (first === true || path === null || (Array.isArray(first) && matchesRules(path, first))) return null;
    const found = await this.#find(request);
    if (found !== null) return found;
    // A browser that opens a page gets the page for missing ones; requests of scripts go to the worker.
    const isNavigation = request.headers.get("sec-fetch-mode") === "navigate";
    return isNavigation && missing !== "none" ? this.#missing(request) : null;
  }

  async #find(request: Request): Promise<Response | null> {
    const url = new URL(request.url);
    const path = decodePath(url.pathname);
    if (path === null) return null;
    const page = await findPage(this.#folder, path, this.#rules.html_handling);
    if (page.kind === "none") return null;
    if (page.kind === "file") return sendFile(page.file, request, 200);
    const location = page.path.split("/").map(encodeURIComponent).join("/") + url.search;
    return new Response(null, { status: 307, headers: { location } });
  }

  async #missing(request: Request): Promise<Response> {
    const { not_found_handling: handling } = this.#rules;
    if (handling === "single-page-application") {
      const file = await this.#folder.find("/index.html");
      if (file !== null) return sendFile(file, request, 200);
    } else if (handling === "404-page") {
      const file = await this.#nearest404(new URL(request.url).pathname);
      if (file !== null) return sendFile(file, request, 404);
    }
    return new Response(null, { status: 404 });
  }

  /** `404.html` in the folder of the path, or in the nearest folder above it. */
  async #nearest404(pathname: string): Promise<AssetFile | null> {
    for (let folder = decodePath(pathname) ?? "/"; folder !== "";) {
      folder = folder.slice(0, folder.lastIndexOf("/"));
      const file = await this.#folder.find(`${folder}/404.html`);
      if (file !== null) return file;
    }
    return null;
  }
}

/** Null for a path that no file can have: with malformed escapes, or with an escaped slash, which does not separate names. */
function decodePath(pathname: string): string | null {
  try {
    const names = pathname.split("/").map(decodeURIComponent);
    return names.some((name) => name.includes("/")) ? null : names.join("/");
  } catch {
    return null;
  }
}

function sendFile(file: AssetFile, request: Request, status: number): Response {
  const headers = new Headers({
    etag: file.etag,
    "cache-control": "public, max-age=0, must-revalidate",
    "accept-ranges": "bytes",
  });
  const type = contentTypeOf(file.path);
  if (type !== null) headers.set("content-type", type);
  if (status === 200 && matchesEtag(request.headers.get("if-none-match"), file.etag))
    return new Response(null, { status: 304, headers });
  const ifRange = request.headers.get("if-range");
  const asked = ifRange === null || ifRange === file.etag ? request.headers.get("range") : null;
  const range = status === 200 ? parseRange(asked, file.size) : null;
  if (range === "unsatisfiable")
    return new Response(null, { status: 416, headers: { "content-range": `bytes */${file.size}` } });
  const { start, end } = range ?? { start: 0, end: file.size - 1 };
  const length = end - start + 1;
  headers.set("content-length", String(length));
  if (range !== null) headers.set("content-range", `bytes ${start}-${end}/${file.size}`);
  const isEmpty = request.method === "HEAD" || file.size === 0;
  const body = isEmpty ? null : readFile(file.path, start, end);
  if (body !== null) knowLength(body, length);
  return new Response(body, {
    status: range === null ? status : 206,
    headers,
  });
}

/** The bytes as a stream; an error of the file ends the stream with it. */
function readFile(path: string, start: number, end: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  let file: FileHandle | undefined;
  let position = start;
  return new ReadableStream({
    async pull(controller) {
      file ??= await openFile(path);
      const piece = new Uint8Array(Math.min(PIECE_BYTES, end - position + 1));
      const { bytesRead } = await file.read(piece, 0, piece.length, position);
      position += bytesRead;
      if (bytesRead > 0) controller.enqueue(piece.subarray(0, bytesRead));
      if (bytesRead > 0 && position <= end) return;
      await file.close();
      if (position <= end) throw new Error("the file became shorter while it was sent");
      controller.close();
    },
    async cancel() {
      await file?.close();
    },
  });
}

const PIECE_BYTES = 64 * 1024;

/** RFC 9110, section 13.1.2: a list of tags, compared without regard to weakness. */
function matchesEtag(header: string | null, etag: string): boolean {
  if (header === null) return false;
  return header === "*" || header.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

/** `run_worker_first` as a list: the worker answers if a pattern matches and none with `!` does. `path` is decoded, patterns may be escaped as in a URL. */
function matchesRules(path: string, patterns: readonly string[]): boolean {
  const matches = (pattern: string) =>
    matchesGlob({ parts: (decodePath(pattern) ?? pattern).split("*") }, path);
  if (patterns.some((pattern) => pattern.startsWith("!") && matches(pattern.slice(1)))) return false;
  return patterns.some((pattern) => !pattern.startsWith("!") && matches(pattern));
}
