/** A registry that takes the packages of this repository, as npm publishes and installs them, and sends everything else to the public one. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Packument {
  readonly name: string;
  readonly "dist-tags": Record<string, string>;
  readonly versions: Record<string, unknown>;
}

interface Publication extends Packument {
  readonly _attachments: Readonly<Record<string, { readonly data: string }>>;
}

export interface NpmRegistry {
  readonly url: string;
  /** Names with versions, in the order in which they were published. */
  readonly published: readonly string[];
  close(): Promise<void>;
}

/** `own`: names that are never looked for elsewhere. Only the bearer of `token` publishes. */
export async function startNpmRegistry(
  own: readonly string[],
  token: string,
  elsewhere = "https://registry.npmjs.org",
): Promise<NpmRegistry> {
  const packages = new Map<string, Packument>();
  const archives = new Map<string, Buffer>();
  const published: string[] = [];

  const publish = async (name: string, request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.headers.authorization !== `Bearer ${token}`) return send(response, 401, {});
    const { _attachments: files, ...given } = JSON.parse(Buffer.concat(chunks).toString()) as Publication;
    const before = packages.get(name);
    const [version = ""] = Object.keys(given.versions);
    if (before !== undefined && Object.hasOwn(before.versions, version))
      return send(response, 403, { error: "this version is published" });
    packages.set(name, {
      ...given,
      "dist-tags": { ...before?.["dist-tags"], ...given["dist-tags"] },
      versions: { ...before?.versions, ...given.versions },
    });
    // npm installs from the address that it gives the archive when it publishes: /<name>/-/<file>.
    for (const [file, { data }] of Object.entries(files))
      archives.set(`${name}/-/${file}`, Buffer.from(data, "base64"));
    published.push(`${name}@${version}`);
    return send(response, 201, { ok: true });
  };

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname).slice(1);
    const name = own.find((one) => path === one || path.startsWith(`${one}/-/`));
    if (name === undefined) {
      response.writeHead(307, { location: elsewhere + (request.url ?? "/") }).end();
    } else if (request.method === "PUT") {
      await publish(name, request, response);
    } else {
      const archive = archives.get(path);
      if (archive !== undefined) response.end(archive);
      else send(response, packages.has(path) ? 200 : 404, packages.get(path) ?? { error: "not found" });
    }
  };

  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    published,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
