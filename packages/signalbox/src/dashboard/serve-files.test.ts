import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { HttpRequest } from "../engines/http-server/index.ts";
import { type BuiltFiles, readBuiltFiles } from "./built-files.ts";
import { serveFile } from "./serve-files.ts";

let server: Server | undefined;
afterEach(async () => {
  server?.close();
});

async function serve(files: BuiltFiles | null): Promise<string> {
  server = createServer((request, response) => {
    try {
      serveFile(request as unknown as HttpRequest, response, files, (request.url ?? "").slice(1));
    } catch {
      response.writeHead(404).end();
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("responds with the build command if the dashboard is not built", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-files-"));
  expect(readBuiltFiles(join(folder, "missing"))).toBeNull();
  expect(readBuiltFiles(folder)).toBeNull();
  const answer = await fetch(await serve(null));
  expect(answer.status).toBe(503);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(await answer.text()).toContain("npm run build:dashboard");
  await rm(folder, { recursive: true });
});

it("serves only files of the build with a known type", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-files-"));
  await mkdir(join(folder, "assets"));
  await writeFile(join(folder, "index.html"), "<title>page</title>");
  await writeFile(join(folder, "assets/a-hash.js"), "1");
  await writeFile(join(folder, "assets/a-hash.js.br"), "not really brotli");
  await writeFile(join(folder, "assets/notes.txt"), "private");
  const files = readBuiltFiles(folder);
  expect([...(files?.keys() ?? [])].sort()).toEqual(["assets/a-hash.js", "index.html"]);
  const url = await serve(files);
  expect((await fetch(`${url}/assets/notes.txt`)).status).toBe(404);
  expect((await fetch(`${url}/assets/a-hash.js.br`)).status).toBe(404);
  expect(await (await fetch(`${url}/accounts/x/tags`)).text()).toContain("page");
  await rm(folder, { recursive: true });
});
