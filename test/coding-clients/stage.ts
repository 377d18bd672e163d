/** A gateway whose providers are scripted models, one of each dialect, and a door before it that records what its clients do. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ModelDialect, type ScriptedModel, startScriptedModel } from "../peers/scripted-model.ts";
import { setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openRecordedDoor, type RecordedDoor } from "./recorded-door.ts";

export interface Target {
  readonly dialect: ModelDialect;
  /** As a client writes it. */
  readonly model: string;
  readonly provider: string;
  /** US dollars per million tokens. */
  readonly price: { readonly in: number; readonly out: number };
}

export const TARGETS = {
  chat: { dialect: "chat", model: "groq/llama-4", provider: "groq", price: { in: 1, out: 3 } },
  messages: {
    dialect: "messages",
    model: "anthropic/claude-opus-5",
    provider: "anthropic",
    price: { in: 5, out: 25 },
  },
  gemini: {
    dialect: "gemini",
    model: "google/gemini-3-pro",
    provider: "google-ai-studio",
    price: { in: 2, out: 12 },
  },
} as const satisfies Record<ModelDialect, Target>;

export interface Stage {
  readonly server: TestServer;
  readonly door: RecordedDoor;
  readonly models: Readonly<Record<ModelDialect, ScriptedModel>>;
  /** A new folder, removed at the end. */
  folder(): Promise<string>;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const root = await mkdtemp(join(tmpdir(), "coding-clients-"));
  const [chat, messages, gemini] = await Promise.all([
    startScriptedModel("chat"),
    startScriptedModel("messages"),
    startScriptedModel("gemini"),
  ]);
  const models = { chat, messages, gemini };
  const targets = Object.values(TARGETS);
  const server = await startTestServer({
    file: {
      gateway: {
        prices: Object.fromEntries(targets.map(({ provider, price }) => [provider, { "*": price }])),
      },
      providers: {
        groq: { baseUrl: `${chat.url}/v1`, dialects: ["chat"] },
        anthropic: { baseUrl: messages.url },
        "google-ai-studio": { baseUrl: gemini.url },
      },
    },
    environment: Object.fromEntries(targets.map(({ provider }) => [secretOf(provider), "sk-stored"])),
  });
  await setGateway(server, { authentication: true });
  for (const { provider } of targets) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: provider,
      alias: "default",
      default_config: true,
      secret_id: secretOf(provider),
    });
  }
  const door = await openRecordedDoor(server.url, root);
  return {
    server,
    door,
    models,
    folder: () => mkdtemp(join(root, "run-")),
    async close() {
      await door.close();
      await server.stop();
      await Promise.all(Object.values(models).map((model) => model.close()));
      await rm(root, { recursive: true, force: true });
    },
  };
}

function secretOf(provider: string): string {
  return `${provider.toUpperCase().replaceAll("-", "_")}_API_KEY`;
}
