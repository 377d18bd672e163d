/** Serves the built files of the dashboard by name, and `index.html` for every other path below `/dashboard`. */
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { BuiltFile, BuiltFiles } from "./built-files.ts";

/** Scripts, styles, fonts and connections of the same origin only, images also inside a text (`data:`); no embedding, plug-ins or inline code. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

const YEAR_SECONDS = 365 * 24 * 60 * 60;

export function serveFile(
  request: HttpRequest,
  response: HttpResponse,
  files: BuiltFiles | null,
  name: string,
): void {
  if (request.method !== "GET" && request.method !== "HEAD")
    throw new SignalboxError("method_not_allowed", { headers: { allow: "GET, HEAD" } });
  if (files === null) {
    sendPage(request, response, 503, NOT_BUILT);
    return;
  }
  const file = files.get(name) ?? (name.startsWith("assets/") ? undefined : files.get("index.html"));
  if (file === undefined) throw new SignalboxError("not_found");
  sendFile(request, response, file);
}

function sendFile(request: HttpRequest, response: HttpResponse, file: BuiltFile): void {
  const headers: Record<string, string | number> = {
    ...SECURITY_HEADERS,
    "content-type": file.contentType,
    "cache-control": file.isImmutable ? `public, max-age=${YEAR_SECONDS}, immutable` : "no-cache",
    etag: file.etag,
    vary: "accept-encoding",
  };
  if (request.headers["if-none-match"] === file.etag) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  const [encoding, body] = chooseBody(request.headers["accept-encoding"], file);
  if (encoding !== null) headers["content-encoding"] = encoding;
  headers["content-length"] = body.length;
  response.writeHead(200, headers);
  response.end(request.method === "HEAD" ? undefined : body);
}

function chooseBody(accepted: string | string[] | undefined, file: BuiltFile): [string | null, Buffer] {
  const codings = new Set(
    String(accepted ?? "")
      .split(",")
      // Weight 0 excludes a coding; other weights are ignored.
      .filter((entry) => !/;\s*q=0(\.0*)?\s*$/.test(entry))
      .map((entry) => entry.split(";")[0]?.trim().toLowerCase()),
  );
  if (codings.has("br") && file.br !== undefined) return ["br", file.br];
  if (codings.has("gzip") && file.gzip !== undefined) return ["gzip", file.gzip];
  return [null, file.plain];
}

function sendPage(request: HttpRequest, response: HttpResponse, status: number, html: string): void {
  response.writeHead(status, {
    ...SECURITY_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "content-length": Buffer.byteLength(html),
    "cache-control": "no-store",
  });
  response.end(request.method === "HEAD" ? undefined : html);
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Signalbox: dashboard not built</title>
<h1>The dashboard is not built</h1>
<p>Run <code>npm run build:dashboard</code> or <code>npm ci</code> in the repository and restart the service.</p>
<p>All other parts of the service work without the dashboard.</p>
</html>
`;
