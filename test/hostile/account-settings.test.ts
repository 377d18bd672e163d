/** An account fills what all accounts share in memory: its settings have limits in number. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let editor: string;
beforeAll(async () => {
  server = await startTestServer();
  await server.api("POST", "/accounts", { id: "team" });
  editor = await server.token(["gateway.edit", "gateway.read"], { account: "team" });
});
afterAll(() => server.stop());

it("an account has at most 500 custom providers", async () => {
  const create = async (account: string, slug: string) => {
    const { status, body } = await server.api(
      "POST",
      `/accounts/${account}/ai-gateway/custom-providers`,
      { name: slug, slug, base_url: `https://${slug}.example.com`, enable: true },
      editor,
    );
    return { status, text: JSON.stringify(body) };
  };
  const slugs = Array.from({ length: 500 }, (_, i) => `p${i}`);
  const statuses = new Set(
    (await Promise.all(slugs.map((slug) => create("team", slug)))).map((one) => one.status),
  );
  expect([...statuses]).toEqual([200]);
  const refused = await create("team", "further");
  expect(refused.status).toBe(400);
  expect(refused.text).toContain("at most 500 custom providers");
});
