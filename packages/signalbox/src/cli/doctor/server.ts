/** Checks the running server: reachable, ready, of this version, with protected gateways. */
import { VERSION } from "../../version.ts";
import type { CommandContext } from "../command.ts";
import { createClient, fetchFor } from "../connect.ts";
import { findServer, type FoundServer } from "../find-server.ts";
import { fail, type Finding, isLoopback, ok, type Patient, warn } from "./finding.ts";

/** Long: a machine that is short of processor time is what this command is often called for. */
const TIMEOUT_MS = 30_000;

export async function checkServer(context: CommandContext, { dataDir, config }: Patient): Promise<Finding[]> {
  const server = await findServer(context);
  if (server === null) return [ok("server", `no server runs on ${dataDir}`)];
  try {
    const { status, problems } = await readReadiness(server);
    if (status !== 200) {
      const why = problems === "" ? `status ${status}` : problems;
      return [fail("server", `${server.url} is not ready: ${why}`, "look into its log")];
    }
    const isOpen =
      !isLoopback(config?.host ?? "127.0.0.1") || !isLoopback(new URL(server.trafficUrl).hostname);
    return [...(await checkVersion(server)), ...(isOpen ? await checkGateways(server) : [])];
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const why = cause instanceof Error ? cause.message : String(cause);
    return [
      fail(
        "server",
        `cannot use ${server.url}: ${why}`,
        `start the server, or correct its address (${server.origin})`,
      ),
    ];
  }
}

async function readReadiness(server: FoundServer): Promise<{ status: number; problems: string }> {
  const send = await fetchFor(server);
  const response = await send(`${server.url}/readyz`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  const text = await response.text();
  const body = text.startsWith("{") ? (JSON.parse(text) as { errors?: { message: string }[] }) : {};
  return { status: response.status, problems: (body.errors ?? []).map(({ message }) => message).join("; ") };
}

async function checkVersion(server: FoundServer): Promise<Finding[]> {
  const { url, token } = server;
  const send = await fetchFor(server);
  const request = (path: string) =>
    send(url + path, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { authorization: `Bearer ${token.text}` },
    });
  // On loopback the description needs no token, so a wrong one would not be noticed.
  const accounts = await request("/accounts");
  await accounts.body?.cancel();
  if (accounts.status === 401)
    return [
      fail("server", `${url} refuses ${token.origin}`, "give a valid token with --token or SIGNALBOX_TOKEN"),
    ];
  const response = await request("/openapi.json");
  const { info } = (await response.json()) as { info?: { version?: string } };
  const version = info?.version ?? "unknown";
  return [
    version === VERSION
      ? ok("server", `${url} is ready, version ${version}`)
      : warn(
          "server",
          `${url} is ready, but has version ${version}; this command has ${VERSION}`,
          "use the same version, or restart the server",
        ),
  ];
}

/** A gateway without authentication is meant for this machine. */
async function checkGateways(server: FoundServer): Promise<Finding[]> {
  const client = await createClient(server, TIMEOUT_MS);
  const gateways = await client.account().gateways.list({ per_page: 100 }).all();
  return gateways
    .filter(({ authentication }) => !authentication)
    .map(({ id }) =>
      warn(
        "exposure",
        `gateway ${id} takes calls without a token from every machine that reaches ${server.trafficUrl}`,
        `signalbox gateway set ${id} --authentication on`,
      ),
    );
}
