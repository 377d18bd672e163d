import { expect, it } from "vitest";
import { EMPTY_FORM, toChatBody } from "./playground-request.ts";
import { type CallTarget, playgroundSnippet } from "./playground-snippets.ts";

const TARGET: CallTarget = {
  origin: "http://127.0.0.1:8787",
  accountId: "default",
  gatewayId: "chat",
  hasToken: true,
  hasProviderKey: false,
};
const FORM = {
  ...EMPTY_FORM,
  model: "openai/gpt-5-mini",
  system: "Be brief.",
  messages: [{ role: "user", content: 'It\'s "quoted"\nand long' }] as const,
  temperature: "0.5",
  maxTokens: "64",
};

it("has in every snippet what the form has, and no token", () => {
  for (const name of ["curl", "openai-ts", "openai-python", "anthropic"] as const) {
    const code = playgroundSnippet(name, TARGET, FORM);
    for (const text of [
      "http://127.0.0.1:8787/v1/default/chat/compat",
      "openai/gpt-5-mini",
      "Be brief.",
      "0.5",
      "64",
      "GATEWAY_TOKEN",
      "stream",
    ])
      expect(code, name).toContain(text);
    expect(code).not.toContain("sbx_");
    expect(code).not.toContain("PROVIDER_API_KEY");
  }
});

it("writes a body that a shell and JSON read back", () => {
  const code = playgroundSnippet("curl", TARGET, FORM);
  const quoted = code.slice(code.indexOf("-d '") + 4, -1).replaceAll("'\\''", "'");
  expect(JSON.parse(quoted)).toEqual(toChatBody(FORM));
});

it("leaves out what the form leaves to the model and the gateway", () => {
  const form = { ...EMPTY_FORM, isStreamed: false };
  expect(toChatBody(form)).toEqual({ model: "echo/echo", messages: [{ role: "user", content: "Hello" }] });
  const open = { ...TARGET, hasToken: false };
  expect(playgroundSnippet("curl", open, form)).not.toContain("authorization");
  expect(
    playgroundSnippet("openai-python", { ...open, hasProviderKey: true }, { ...form, skipsCache: true }),
  ).toContain('"gw-aig-skip-cache": "true"');
});
