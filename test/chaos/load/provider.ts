/** The provider of the load. It counts what arrives: this is what an operator pays for, whatever the nodes believe. */
import { type ProviderPeer, sendJson, startProvider } from "../../peers/provider.ts";

/** Of one call, in tokens; each costs 1. A reservation is larger, so a sum never exceeds a limit by rounding. */
export const PROMPT_TOKENS = 1;
export const COMPLETION_TOKENS = 6;
export const CALL_COST = PROMPT_TOKENS + COMPLETION_TOKENS;
export const MODEL = "m";
/** Longer than a run: a node that was paused must not use a connection that the provider has closed meanwhile. */
const IDLE_MS = 3_600_000;

export interface CountingProvider {
  readonly peer: ProviderPeer;
  /** Calls of a gateway so far. */
  calls(gateway: string): number;
}

/** What the nodes need to know about the provider. */
export const providerConfig = (url: string): object => ({
  providers: { openai: { baseUrl: url } },
  gateway: { prices: { openai: { [MODEL]: { in: 1_000_000, out: 1_000_000 } } } },
});

/** The body of a call names its gateway, because the provider sees nothing else of it. */
export const callBody = (gateway: string): object => ({
  model: MODEL,
  max_tokens: COMPLETION_TOKENS,
  user: gateway,
  messages: [{ role: "user", content: "hi" }],
});

/** What a call could cost: a third of its bytes as input, and its limit of output. */
export const reservationOf = (gateway: string): number =>
  Math.ceil(JSON.stringify(callBody(gateway)).length / 3) + COMPLETION_TOKENS;

export async function startCountingProvider(): Promise<CountingProvider> {
  const calls = new Map<string, number>();
  const peer = await startProvider((request, response) => {
    const { user } = JSON.parse(request.body) as { user: string };
    calls.set(user, (calls.get(user) ?? 0) + 1);
    // The list of requests would grow without end in a long run.
    peer.requests.length = 0;
    sendJson(response, 200, {
      id: "c",
      object: "chat.completion",
      model: MODEL,
      choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
      usage: {
        prompt_tokens: PROMPT_TOKENS,
        completion_tokens: COMPLETION_TOKENS,
        total_tokens: CALL_COST,
      },
    });
  }, IDLE_MS);
  return { peer, calls: (gateway) => calls.get(gateway) ?? 0 };
}
