/** `signalbox/testing`: agents in tests of any runner. See docs/guides/test-agents.md. */
export type { AgentFailure } from "./failures.ts";
export type { TestWebhook, WebhookAnswer } from "./send-webhook.ts";
export { startAgents, type TestAgents, type TestOptions } from "./start-agents.ts";
export type { TestAgent, TestEvent } from "./test-agent.ts";
export type { TestConnection } from "./test-connection.ts";
