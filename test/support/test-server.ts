/** A real service in this process, on a free port and in its own folder. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../packages/signalbox/src/config/index.ts";
import { checkConfigFile } from "../../packages/signalbox/src/config/read-config-file.ts";
import type { ConfigFileInput } from "../../packages/signalbox/src/config/index.ts";
import type { Clock } from "../../packages/signalbox/src/core/clock.ts";
import { type Service, startService } from "../../packages/signalbox/src/service.ts";
import { createLogger } from "../../packages/signalbox/src/telemetry/logger.ts";
import { patiently } from "./patience.ts";
import { ROOT_TOKEN } from "./root-token.ts";
import { type Answer, readAnswer } from "./send-request.ts";

export { ROOT_TOKEN };

export interface TestServer {
  readonly url: string;
  readonly dataDir: string;
  readonly service: Service;
  /** Parsed log lines. */
  readonly logs: Record<string, unknown>[];
  /** Calls the management API with the root token or another token. */
  api(method: string, path: string, body?: unknown, token?: string | null): Promise<Answer>;
  /** Creates a token of the account with these permissions. */
  token(
    permissions: readonly string[],
    options?: { account?: string; gateway_id?: string; expires_at?: string },
  ): Promise<string>;
  stop(): Promise<void>;
}

export interface TestServerOptions {
  readonly file?: ConfigFileInput;
  readonly environment?: Record<string, string>;
  readonly clock?: Clock;
  /** A monotonic clock. Default: `clock`, if given. */
  readonly steadyClock?: Clock;
  /** Reuses a folder, for example after a restart; the caller removes it. */
  readonly dataDir?: string;
  /** Default: a free port. Clients that reconnect after a restart need the same port. */
  readonly port?: number;
  /** Default: loopback. */
  readonly host?: string;
  /** A separate administration address; `api` then uses it. */
  readonly admin?: { readonly host: string; readonly port: number };
}

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "signalbox-test-")));
  const environment = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, ...options.environment };
  const flags = { port: String(options.port ?? 0), host: options.host, dataDir };
  const loaded = await loadConfig(flags, environment, dataDir);
  const config = { ...loaded, admin: options.admin ?? null };
  const logs: Record<string, unknown>[] = [];
  const logger = createLogger({
    level: "debug",
    isPretty: false,
    destination: { write: (line) => void logs.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const service = await startService({
    config: { ...config, file: checkConfigFile(patiently(options.file ?? {}), "test") },
    logger,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...(options.steadyClock === undefined ? {} : { steadyClock: options.steadyClock }),
    onFatal: (error) => {
      throw error;
    },
  });
  const api: TestServer["api"] = async (method, path, body, token = ROOT_TOKEN) => {
    const response = await fetch(service.adminUrl + path, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    return readAnswer(response);
  };
  return {
    url: service.url,
    dataDir,
    service,
    logs,
    api,
    async token(permissions, { account = "default", ...rest } = {}) {
      const { body } = await api("POST", `/accounts/${account}/tokens`, {
        name: "test",
        permissions,
        ...rest,
      });
      return (body as { result: { token: string } }).result.token;
    },
    async stop() {
      await service.stop();
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
    },
  };
}
