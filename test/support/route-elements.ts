/** Elements of dynamic routes, and a call of a route through the universal endpoint. */
import { send, type RawAnswer } from "./gateway.ts";
import type { TestServer } from "./test-server.ts";

export const to = (elementId: string) => ({ elementId });
export const start = (next: string) => ({ id: "start", type: "start" as const, outputs: { next: to(next) } });
export const end = { id: "end", type: "end" as const, outputs: {} };
export const model = (id: string, provider: string, fallback = "end", retries = 0) => ({
  id,
  type: "model" as const,
  properties: { provider, model: id, retries, timeout: 600_000 },
  outputs: { success: to("end"), fallback: to(fallback) },
});

export async function callRoute(
  server: TestServer,
  name: string,
  headers: Record<string, string> = {},
  query: object = {},
): Promise<RawAnswer & { readonly json: Record<string, unknown> }> {
  const answer = await send(server, "POST", "/v1/default/default", {
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify([
      {
        provider: "compat",
        endpoint: "chat/completions",
        headers: { authorization: "Bearer callers-own", "x-kept": "1" },
        query: { model: `dynamic/${name}`, messages: [{ role: "user", content: "Hi" }], ...query },
      },
    ]),
  });
  return { ...answer, json: JSON.parse(answer.body) as Record<string, unknown> };
}
