/** Reads a chat completion as a careful client does: an error inside a stream, or a stream that breaks off, is no answer. */
import { send } from "./gateway.ts";
import type { TestServer } from "./test-server.ts";

export interface ChatResult {
  /** The whole answer arrived. */
  readonly isAnswered: boolean;
  readonly status: number;
  readonly content: string;
  readonly model: string | null;
  readonly usage: unknown;
  /** The code of the error, or how the connection ended. */
  readonly error: string | null;
  readonly headers: Readonly<Record<string, unknown>>;
}

interface Chunk {
  readonly model?: string;
  readonly usage?: unknown;
  readonly error?: { readonly code?: string | null };
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[];
}

export interface ChatStep {
  readonly provider: string;
  readonly model: string;
  readonly config?: object;
}

/** Streams a chat through the universal endpoint. */
export async function streamChat(
  server: TestServer,
  steps: readonly ChatStep[],
  headers: Record<string, string> = {},
): Promise<ChatResult> {
  const body = steps.map(({ provider, model, config }) => ({
    provider,
    endpoint: "chat/completions",
    headers: { authorization: "Bearer key" },
    ...(config === undefined ? {} : { config }),
    query: {
      model,
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: "Explain trust in sixty words." }],
    },
  }));
  let failure: string | null = null;
  const answer = await send(server, "POST", "/v1/default/default", {
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  }).catch((error: unknown) => {
    failure = String(error);
    return null;
  });
  if (answer === null) return { ...NOTHING, error: failure ?? "cut" };
  if (answer.status !== 200) {
    const { error, internalCode } = JSON.parse(answer.body) as {
      error?: { code?: string };
      internalCode?: number;
    };
    return {
      ...NOTHING,
      status: answer.status,
      headers: answer.headers,
      error: String(error?.code ?? internalCode),
    };
  }
  return { ...readChunks(answer.body), status: 200, headers: answer.headers };
}

const NOTHING: ChatResult = {
  isAnswered: false,
  status: 0,
  content: "",
  model: null,
  usage: null,
  error: null,
  headers: {},
};

function readChunks(body: string): Omit<ChatResult, "status" | "headers"> {
  let content = "";
  let model: string | null = null;
  let usage: unknown = null;
  for (const line of body.split("\n")) {
    if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
    let chunk: Chunk;
    try {
      chunk = JSON.parse(line.slice(6)) as Chunk;
    } catch {
      continue;
    }
    if (chunk.error !== undefined) {
      return { isAnswered: false, content, model, usage, error: String(chunk.error.code) };
    }
    model = chunk.model ?? model;
    usage = chunk.usage ?? usage;
    content += chunk.choices?.[0]?.delta?.content ?? "";
  }
  return { isAnswered: true, content, model, usage, error: null };
}
