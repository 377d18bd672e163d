/** A service whose providers are one realtime peer, with stored keys and prices, for the tests of realtime sessions. */
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { type RealtimePeer, serveLikeOpenAi, startRealtimePeer } from "../peers/realtime.ts";
import { readLogs, setGateway } from "./gateway.ts";
import { readMetric } from "./read-metric.ts";
import { startTestServer, type TestServer } from "./test-server.ts";
import { waitUntil } from "./wait-until.ts";

export interface RealtimeGateway {
  readonly peer: RealtimePeer;
  readonly server: TestServer;
  /** The address of a session with OpenAI's realtime model. */
  readonly url: string;
  store(provider: string, secret: string, weight?: number): Promise<void>;
  /** A token with the Run permission. */
  mint(fields?: object): Promise<{ id: string; token: string }>;
  rowsSoFar(): Promise<number>;
  /** The rows of the log, as soon as there are this many. */
  openRows(count: number): ReturnType<typeof readLogs>;
}

/** Registers the hooks that start and stop it; before each test the peer and the gateway's settings are as at the start. */
export function useRealtimeGateway(): RealtimeGateway {
  let peer: RealtimePeer;
  let server: TestServer;
  const gateway: RealtimeGateway = {
    get peer() {
      return peer;
    },
    get server() {
      return server;
    },
    get url() {
      return `${server.url}/v1/default/default/openai/realtime?model=gpt-realtime`;
    },
    async store(provider, secret, weight = 1) {
      const path = "/accounts/default/ai-gateway/gateways/default/provider_configs";
      const { status, body } = await server.api("POST", path, { provider_slug: provider, secret, weight });
      expect([status, body]).toEqual([200, body]);
    },
    async mint(fields = {}) {
      const { body } = await server.api("POST", "/accounts/default/tokens", {
        name: "realtime",
        permissions: ["gateway.run"],
        ...fields,
      });
      return (body as { result: { id: string; token: string } }).result;
    },
    async rowsSoFar() {
      // The session of an earlier test has its row when it has ended here, which may be later than at its client.
      await waitUntil(
        () => readMetric(server, "signalbox_gateway_sessions"),
        (open) => open === 0,
      );
      return (await readLogs(server)).length;
    },
    openRows: (count) =>
      waitUntil(
        () => readLogs(server),
        (rows) => rows.length >= count,
      ),
  };
  beforeAll(async () => {
    peer = await startRealtimePeer();
    server = await startTestServer({
      file: {
        // A test's judge is on loopback.
        outgoing: { allowPrivateHosts: true },
        providers: {
          openai: { baseUrl: `${peer.url}/v1` },
          "google-ai-studio": { baseUrl: peer.url },
          groq: { baseUrl: `${peer.url}/v1` },
          deepgram: { baseUrl: peer.url },
        },
        gateway: {
          prices: {
            openai: { "gpt-realtime": { in: 4, out: 16, audioIn: 32, audioOut: 64 } },
            "google-ai-studio": { "gemini-live": { in: 1, out: 2 } },
          },
        },
      },
    });
    await gateway.store("openai", "stored-key");
    await gateway.store("google-ai-studio", "stored-google-key");
  });
  afterAll(async () => {
    await server.stop();
    await peer.close();
  });
  beforeEach(async () => {
    // A test that failed may have left sessions open.
    for (const { socket } of peer.sessions) socket.terminate();
    peer.sessions.length = 0;
    peer.handshakes.length = 0;
    peer.refuse = () => null;
    peer.serve = serveLikeOpenAi;
    await setGateway(server, { authentication: true, spend_limits: null, rate_limiting_limit: null });
  });
  return gateway;
}

/** The gateway's own header with a token. */
export const own = (token: string) => ({ headers: { "gw-aig-authorization": `Bearer ${token}` } });
