/** Requests for tags and the shape of their errors. */
import type { Answer } from "./send-request.ts";
import type { TestServer } from "./test-server.ts";

export const TAGS = "/accounts/default/tags";

export const putTags = (server: TestServer, id: unknown, tags: unknown, type: unknown = "worker") =>
  server.api("PUT", TAGS, { resource_type: type, resource_id: id, tags });

export const getTags = (server: TestServer, id: string, type = "worker") =>
  server.api("GET", `${TAGS}?resource_type=${type}&resource_id=${encodeURIComponent(id)}`);

export const failure = (code: number, message: string) => ({
  success: false,
  errors: [{ code, message }],
  messages: [],
  result: null,
});

/** Status and body together for one comparison. */
export async function outcome(
  answer: Promise<Pick<Answer, "status" | "body">>,
): Promise<[status: number, body: unknown]> {
  const { status, body } = await answer;
  return [status, body];
}
