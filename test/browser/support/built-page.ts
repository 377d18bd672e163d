/** Builds a page with Vite into a temporary folder and serves it on a free loopback port. */
import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { build } from "vite";

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

export interface BuiltPage {
  readonly url: string;
  readonly folder: string;
  close(): Promise<void>;
}

/** Builds the page in `root`. Uses the development build of React, because only that build runs Strict Mode effects twice. */
export async function buildPage(root: string): Promise<BuiltPage> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-page-"));
  await build({
    root,
    configFile: false,
    mode: "development",
    logLevel: "error",
    define: { "process.env.NODE_ENV": JSON.stringify("development") },
    build: { outDir: folder, emptyOutDir: true, minify: false },
  });
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url ?? "/", "http://page").pathname);
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    stat(file).then(
      () => {
        response.writeHead(200, {
          "content-type": CONTENT_TYPES[extname(file)] ?? "application/octet-stream",
        });
        createReadStream(file).pipe(response);
      },
      () => response.writeHead(path === "/favicon.ico" ? 204 : 404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    folder,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
