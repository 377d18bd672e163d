import { expect, it } from "vitest";
import { PROVIDERS, snippet, SNIPPETS } from "./snippets.ts";

const target = {
  origin: "https://box.example.com",
  accountId: "default",
  gatewayId: "shop",
  provider: "openai",
  token: null,
};

it.each(SNIPPETS)(
  "$title contains the gateway URL and header, and reads the token from the environment",
  ({ name }) => {
    const code = snippet(name, target);
    expect(code).toContain("https://box.example.com/v1/default/shop/");
    expect(code).toContain("gw-aig-authorization");
    expect(code).toContain("GATEWAY_TOKEN");
    expect(code).toContain("Bearer ");
  },
);

it.each(SNIPPETS)("$title contains a token that was just created", ({ name }) => {
  const code = snippet(name, { ...target, token: "sbx_new" });
  expect(code).toContain("Bearer sbx_new");
  expect(code).not.toContain("GATEWAY_TOKEN");
});

it("omits the provider key for a provider without one", () => {
  expect(snippet("curl", { ...target, provider: "echo" })).not.toContain("Authorization: Bearer");
  for (const { slug, keyVariable } of PROVIDERS.filter((one) => one.keyVariable !== null))
    expect(snippet("curl", { ...target, provider: slug })).toContain(`Authorization: Bearer $${keyVariable}`);
});
