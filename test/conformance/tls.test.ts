/** HTTPS and secure WebSockets by certificate files, without a proxy. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { connect as connectPlain } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { runCli } from "../../packages/signalbox/src/cli/main.ts";
import { pinnedFetch } from "../../packages/signalbox/src/cli/pinned-fetch.ts";
import { startServerProcess } from "../support/server-process.ts";
import { makeCertificate, type TestCertificate } from "../support/test-certificate.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const AGENTS = join(import.meta.dirname, "../fixtures/roaming-agents.ts");

let folder: string;
let first: TestCertificate;
let second: TestCertificate;
let live: { cert: string; key: string };
let server: TestServer;
let send: typeof fetch;
const bearer = { authorization: `Bearer ${ROOT_TOKEN}` };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-tls-"));
  // The name of a public server: commands on the machine connect to 127.0.0.1 and must work all the same.
  first = makeCertificate(folder, "first", "DNS:ai.example.com,DNS:localhost");
  second = makeCertificate(folder, "second", "DNS:ai.example.com,DNS:localhost");
  // As certbot has it: the path stays, a symbolic link changes.
  live = { cert: join(folder, "fullchain.pem"), key: join(folder, "privkey.pem") };
  use(first);
  send = pinnedFetch(first.pem);
  server = await startTestServer({
    environment: { SIGNALBOX_TLS_CERT: live.cert, SIGNALBOX_TLS_KEY: live.key },
    file: { agents: { modules: [AGENTS] } },
  });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

function use({ cert, key }: { cert: string; key: string }): void {
  for (const [path, target] of [
    [live.cert, cert],
    [live.key, key],
  ] as const) {
    symlinkSync(target, `${path}.new`);
    renameSync(`${path}.new`, path);
  }
}

async function open(url: string, options: ConnectionOptions): Promise<TLSSocket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), servername: "localhost", ...options });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  return socket;
}

const health = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
async function ask(socket: TLSSocket, request: string): Promise<string> {
  socket.write(request);
  const [data] = (await once(socket, "data")) as [Buffer];
  return data.toString();
}

describe("a server with a certificate", () => {
  it("its address is https, and the one port serves HTTPS and secure WebSockets", async () => {
    expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect((await send(`${server.url}/healthz`)).status).toBe(200);
    const options = { headers: bearer, ca: first.pem, servername: "localhost" };
    const socket = new WebSocket(`${server.url.replace("https", "wss")}/agents/roamer/tls`, options);
    const [frame] = (await once(socket, "message")) as [Buffer];
    expect(JSON.parse(frame.toString())).toMatchObject({ type: "cf_agent_identity", name: "tls" });
    socket.close();
    await once(socket, "close");
  });

  it("a response streams: the first piece arrives while the rest does not exist yet", async () => {
    const abort = new AbortController();
    const response = await send(`${server.url}/agents/roamer/tls/endless`, {
      headers: bearer,
      signal: abort.signal,
    });
    const { value } = (await response.body?.getReader().read()) ?? {};
    expect([response.status, value?.length]).toEqual([200, expect.any(Number)]);
    abort.abort();
  });

  it("the session of the dashboard is a secure cookie, and links have the scheme", async () => {
    const { origin } = new URL(server.url);
    const login = await send(`${server.url}/dashboard/session`, {
      method: "POST",
      headers: { "content-type": "application/json", origin },
      body: JSON.stringify({ token: ROOT_TOKEN }),
    });
    expect(login.headers.get("set-cookie")).toMatch(/; HttpOnly; SameSite=Strict; Secure$/);
    expect(await server.service.createLoginLink()).toMatch(/^https:/);
    expect(server.service.firstCommands.map(({ command }) => command).join("\n")).toContain(server.url);
  });

  it("TLS 1.1, plain HTTP and noise end their own connection only", async () => {
    const old = open(server.url, {
      ca: first.pem,
      maxVersion: "TLSv1.1",
      minVersion: "TLSv1",
      ciphers: "ALL:@SECLEVEL=0",
    });
    await expect(old).rejects.toThrow(/protocol version|no protocols|unsupported/i);
    for (const bytes of [health, "\0\0\0\0"]) {
      const plain = connectPlain(Number(new URL(server.url).port), "127.0.0.1");
      plain.on("error", () => undefined);
      plain.end(bytes);
      plain.resume();
      await once(plain, "close");
    }
    const metrics = await waitUntil(
      async () => (await send(`${server.url}/metrics`, { headers: bearer })).text(),
      // Closed connections are no longer counted; only the one that asks is.
      (text) => /^signalbox_http_connections 1$/m.test(text),
    );
    expect(Number(/^signalbox_http_malformed_total (\d+)/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(2);
  });

  it("agents see requests with https", async () => {
    const response = await send(`${server.url}/agents/roamer/tls`, { headers: bearer });
    const { url } = (await response.json()) as { url: string };
    expect(url).toBe(`${server.url}/agents/roamer/tls`);
  });
});

describe("commands on the machine of the server", () => {
  async function command(args: readonly string[], environment: Record<string, string>) {
    let out = "";
    let err = "";
    const code = await runCli(args, {
      out: { write: (text: string) => (out += text) },
      err: { write: (text: string) => (err += text) },
      environment,
      workingFolder: folder,
    });
    return { code, out, err };
  }

  it("trust the certificate that the data folder names, whatever its name and its issuer", async () => {
    const environment = { SIGNALBOX_DATA_DIR: server.dataDir, SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
    const { code, out, err } = await command(["account", "list"], environment);
    expect([code, out, err]).toEqual([0, expect.stringContaining("default"), ""]);
    const doctor = await command(["doctor", "--tls-cert", live.cert, "--tls-key", live.key], environment);
    expect(doctor.out).toMatch(/^ok {4}certificate +\S+fullchain\.pem is for DNS:ai\.example\.com/m);
    expect(doctor.out).toMatch(/^ok {4}server +https:\S+ is ready, version /m);
  });

  it("the health check of the container image does, too", async () => {
    const script = join(import.meta.dirname, "../../deploy/docker/healthcheck.js");
    const check = async (dataDir: string) => {
      const env = { SIGNALBOX_DATA_DIR: dataDir };
      const child = spawn(process.execPath, [script], { env, stdio: ["ignore", "ignore", "ignore"] });
      return ((await once(child, "exit")) as [number])[0];
    };
    expect([await check(server.dataDir), await check(join(folder, "no-server"))]).toEqual([0, 1]);
  });

  it("with --url, a certificate that is not trusted is refused with a hint", async () => {
    const environment = { SIGNALBOX_TOKEN: ROOT_TOKEN };
    const plain = await command(
      ["account", "list", "--url", server.url.replace("https", "http")],
      environment,
    );
    expect([plain.code, plain.err]).toEqual([1, expect.stringMatching(/if it uses TLS, use https:/)]);
    const { code, err } = await command(["account", "list", "--url", server.url], environment);
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/certificate is not trusted .*NODE_EXTRA_CA_CERTS/),
    ]);
  });
});

describe("a renewed certificate", () => {
  it("serves new connections; open ones go on; files that do not fit together are refused and change nothing", async () => {
    const before = await open(server.url, { ca: first.pem });
    expect(await ask(before, health)).toMatch(/^HTTP\/1.1 200/);
    use({ cert: second.cert, key: first.key });
    server.service.reloadCertificate();
    expect(server.logs.at(-1)).toMatchObject({
      level: "error",
      msg: expect.stringContaining("does not belong to"),
    });
    expect((await send(`${server.url}/healthz`)).status).toBe(200);
    use(second);
    server.service.reloadCertificate();
    expect(server.logs.at(-1)).toMatchObject({ msg: "a new TLS certificate is in use" });
    const after = await open(server.url, { ca: second.pem });
    expect(await ask(after, health)).toMatch(/^HTTP\/1.1 200/);
    expect(await ask(before, health)).toMatch(/^HTTP\/1.1 200/);
    await expect(send(`${server.url}/healthz`)).rejects.toThrow(/self-signed|unable to verify/);
    const announced = readFileSync(join(server.dataDir, "server.json"), "utf8");
    expect((JSON.parse(announced) as { certificate: string }).certificate.trim()).toBe(second.pem.trim());
    before.destroy();
    after.destroy();
    use(first);
    server.service.reloadCertificate();
  });

  it("SIGHUP reloads it in the running process, for both addresses, and SIGTERM still ends the process in order", async () => {
    const own = { cert: join(folder, "own.crt"), key: join(folder, "own.key") };
    copyFileSync(first.cert, own.cert);
    copyFileSync(first.key, own.key);
    const child = await startServerProcess(
      [
        "--data-dir",
        join(folder, "child"),
        "--admin-port",
        "0",
        "--tls-cert",
        own.cert,
        "--tls-key",
        "own.key",
      ],
      { cwd: folder },
    );
    const { adminUrl = "" } = JSON.parse(readFileSync(join(folder, "child/server.json"), "utf8")) as {
      adminUrl?: string;
    };
    expect([child.url, adminUrl]).toEqual([
      expect.stringMatching(/^https:/),
      expect.stringMatching(/^https:/),
    ]);
    writeFileSync(own.cert, second.pem);
    copyFileSync(second.key, own.key);
    child.child.kill("SIGHUP");
    await waitUntil(
      () => child.stderr(),
      (text) => text.includes("a new TLS certificate is in use"),
    );
    for (const url of [child.url, adminUrl])
      expect((await pinnedFetch(second.pem)(`${url}/healthz`)).status).toBe(200);
    expect(await child.end("SIGTERM")).toBe(0);
  });
});

describe("files that cannot be used", () => {
  it("the server does not start, says why, and creates no database", async () => {
    const dataDir = join(folder, "never");
    const started = startTestServer({
      dataDir,
      environment: { SIGNALBOX_TLS_CERT: first.cert, SIGNALBOX_TLS_KEY: second.key },
    });
    await expect(started).rejects.toThrow(
      /second.key does not belong to the first certificate in .*first.crt/,
    );
    await expect(
      startTestServer({ dataDir, environment: { SIGNALBOX_TLS_CERT: first.cert } }),
    ).rejects.toThrow(/--tls-key .*found none/);
    expect(() => readFileSync(join(dataDir, "signalbox.db"))).toThrow("ENOENT");
  });
});
