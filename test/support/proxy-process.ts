/** nginx and Caddy with the examples of `deploy/`: only names of files and ports are replaced. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import { CADDY_IS_MISSING, findCaddy, findNginx, NGINX_IS_MISSING } from "./proxy-paths.ts";
import type { TestCertificate } from "./test-certificate.ts";

export interface ProxyOptions {
  readonly folder: string;
  readonly certificate: TestCertificate;
  /** Port of the service on 127.0.0.1. */
  readonly port: number;
}

export interface ProxyProcess {
  /** On ::1, so that the address of a client differs from the proxy's. */
  readonly url: string;
  readonly plainUrl: string;
  stop(): Promise<void>;
}

const DEPLOY = join(import.meta.dirname, "../../deploy");

export async function startNginx({ folder, certificate, port }: ProxyOptions): Promise<ProxyProcess> {
  const [secure, plain] = [await freePort(), await freePort()];
  const site = replaceAll(readFileSync(join(DEPLOY, "nginx/signalbox.conf"), "utf8"), [
    ["server 127.0.0.1:8787;", `server 127.0.0.1:${port};`],
    ["    listen 80;\n", ""],
    ["    listen 443 ssl http2;\n", ""],
    ["listen [::]:80;", `listen [::1]:${plain};`],
    ["listen [::]:443 ssl http2;", `listen [::1]:${secure} ssl http2;`],
    ["/etc/letsencrypt/live/ai.example.com/fullchain.pem", certificate.cert],
    ["/etc/letsencrypt/live/ai.example.com/privkey.pem", certificate.key],
  ]);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  for (const name of temporary) mkdirSync(join(folder, `nginx-${name}`), { recursive: true });
  writeFileSync(join(folder, "site.conf"), site);
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log warn;
events { worker_connections 128; }
http {
  access_log off;
${temporary.map((name) => `  ${name}_temp_path ${folder}/nginx-${name};`).join("\n")}
  include ${folder}/site.conf;
}
`,
  );
  const program = findNginx();
  if (program === null) throw new Error(NGINX_IS_MISSING);
  const args = ["-p", folder, "-e", join(folder, "nginx.log"), "-c", join(folder, "nginx.conf")];
  return run(spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] }), secure, plain);
}

export async function startCaddy({ folder, certificate, port }: ProxyOptions): Promise<ProxyProcess> {
  const [secure, plain] = [await freePort(), await freePort()];
  const site = replaceAll(readFileSync(join(DEPLOY, "caddy/Caddyfile"), "utf8"), [
    // A certificate of Let's Encrypt needs the internet.
    ["ai.example.com {\n", `ai.example.com {\n\tbind ::1\n\ttls ${certificate.cert} ${certificate.key}\n`],
    ["127.0.0.1:8787", `127.0.0.1:${port}`],
  ]);
  const settings = `{\n\tadmin off\n\thttp_port ${plain}\n\thttps_port ${secure}\n}\n`;
  const file = join(folder, "Caddyfile");
  writeFileSync(file, settings + site);
  const program = findCaddy();
  if (program === null) throw new Error(CADDY_IS_MISSING);
  const child = spawn(program, ["run", "--config", file, "--adapter", "caddyfile"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env["PATH"], HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  return run(child, secure, plain);
}

/** Throws if a text is not there: the example has changed. */
function replaceAll(text: string, pairs: readonly (readonly [string, string])[]): string {
  let result = text;
  for (const [from, to] of pairs) {
    if (!result.includes(from)) throw new Error(`the example has no ${JSON.stringify(from)}`);
    result = result.replaceAll(from, to);
  }
  return result;
}

async function run(child: ChildProcess, secure: number, plain: number): Promise<ProxyProcess> {
  let output = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (output += text));
  const exit = once(child, "exit");
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  // Caddy opens its ports one after the other.
  for (const port of [secure, plain])
    while (!(await accepts(port))) {
      if (hasEnded()) throw new Error(`the proxy ended: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  return {
    url: `https://[::1]:${secure}`,
    plainUrl: `http://[::1]:${plain}`,
    async stop() {
      if (!hasEnded()) child.kill("SIGKILL");
      await exit;
    },
  };
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "::1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
