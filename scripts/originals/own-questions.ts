/** Questions for programs that no protocol of the packages reaches on its usual path. */
export interface OwnQuestions {
  /** A part of the path of the wrangler file. */
  readonly program: string;
  /** Requests to routes that only this program has. */
  readonly requests?: readonly OwnRequest[];
  /** Variables without which it answers nothing. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where its MCP servers are, besides `/mcp`. */
  readonly mcp?: readonly string[];
  /** Where its agents are, with the binding's name last. */
  readonly agents?: readonly string[];
}

export interface OwnRequest extends Pick<RequestInit, "method" | "body"> {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const LOADED = `export default { fetch: () => new Response("from a loaded program") };`;
const postJson = (path: string, body: unknown): OwnRequest => ({
  path,
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

export function ownQuestionsOf(path: string): OwnQuestions | undefined {
  return OWN_QUESTIONS.find(({ program }) => path.includes(program));
}

const OWN_QUESTIONS: readonly OwnQuestions[] = [
  {
    program: "examples/assistant/wrangler",
    env: { DEV_USER: "asker" },
    agents: ["/chat"],
    requests: [{ path: "/auth/me" }],
  },
  { program: "examples/auth-agent/", requests: [{ path: "/auth/me" }, { path: "/chat" }] },
  {
    program: "examples/cross-domain/",
    agents: ["/agents/my-agent/asked?token=demo-token-123&userId=asker"],
    requests: [{ path: "/agents/my-agent/asked?token=wrong" }],
  },
  {
    program: "examples/next/lifecycle/",
    requests: [{ path: "/agents/do-agent/asked/stats" }, { path: "/agents/do-agent/asked" }],
  },
  { program: "examples/dynamic-workers/", requests: [postJson("/api/run", { code: LOADED })] },
  {
    program: "examples/dynamic-workers-playground/",
    requests: [postJson("/api/run", { files: { "src/index.ts": LOADED } })],
  },
  { program: "examples/mcp-elicitation-mrtr/", env: { MRTR_REQUEST_STATE_KEY: "k".repeat(64) } },
  {
    program: "examples/think-chat-sdk/",
    env: { TELEGRAM_BOT_TOKEN: "1:asked", TELEGRAM_WEBHOOK_SECRET_TOKEN: "asked" },
  },
  { program: "examples/playground/", mcp: ["/mcp-server"] },
  { program: "examples/tictactoe/", agents: ["/some/prefix/tic-tac-toe/asked"] },
  {
    program: "experimental/pi-recovery/",
    requests: [postJson("/pi/start", {}), { path: "/pi/status" }],
  },
  {
    program: "packages/agents/conformance/",
    mcp: ["/mcp-handler", "/mcp-handler-legacy", "/mcp-agent"],
  },
  { program: "packages/agents/src/tests/", mcp: ["/codemode-mcp"] },
];
