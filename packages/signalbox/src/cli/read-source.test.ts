import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { UsageError } from "./command.ts";
import { readSource } from "./read-source.ts";

let server: Server;
let url: string;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-source-"));
  writeFileSync(join(folder, "prices.json"), "{}");
  server = createServer((request, response) => {
    const to = { "/moved": "/file", "/away": "http://192.0.2.1/", "/around": "/around" }[request.url ?? ""];
    if (to !== undefined) response.writeHead(302, { location: to }).end();
    else if (request.url === "/file") response.end("text");
    else if (request.url === "/endless") {
      const chunk = Buffer.alloc(1024 * 1024);
      const write = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", write);
      write();
    } else response.writeHead(404).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

const read = (source: string) => readSource({ workingFolder: folder }, source);

it("reads a file of the working folder, and a URL of this machine with its redirects", async () => {
  expect(await read("prices.json")).toBe("{}");
  expect(await read(`${url}/file`)).toBe("text");
  expect(await read(`${url}/moved`)).toBe("text");
});

it.each([
  ["a redirect to an address without https", () => `${url}/away`],
  ["redirects without an end", () => `${url}/around`],
  ["a body without an end", () => `${url}/endless`],
  ["a missing page", () => `${url}/nothing`],
  ["an address without https", () => "http://192.0.2.1/prices.json"],
  ["another protocol", () => "file:///etc/passwd"],
  ["a password in the URL", () => `${url.replace("//", "//a:b@")}/file`],
  ["a missing file", () => "missing.json"],
  ["a folder", () => "."],
])("refuses %s", async (_, source) => {
  await expect(read(source())).rejects.toBeInstanceOf(UsageError);
});
