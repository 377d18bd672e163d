import { describe, expect, it } from "vitest";
import { checkConfigFile } from "../config/read-config-file.ts";
import { createSources, readSecrets } from "./source.ts";

const create = (webhooks: object, environment: Record<string, string> = {}) =>
  createSources(checkConfigFile({ webhooks }, "test").webhooks, environment);

describe("sources from configuration and environment", () => {
  it("read comma-separated secrets from their own variable", () => {
    const sources = create(
      {},
      { WEBHOOK_SECRET: "a", GITHUB_WEBHOOK_SECRET: " b , c ,, ", GENERIC_WEBHOOK_SECRET: "no" },
    );
    expect(sources.get("generic")?.secrets.map((secret) => secret.reveal())).toEqual(["a"]);
    expect(sources.get("github")?.secrets.map((secret) => secret.reveal())).toEqual(["b", "c"]);
    expect(sources.get("stripe")?.keys).toEqual([]);
    expect(readSecrets({}, "X")).toEqual([]);
  });

  it("can be added and changed, also the variable of their secrets", () => {
    const sources = create(
      {
        sources: {
          "my-git": { scheme: "github", agent: "repo-agent" },
          stripe: { secretVariable: "HOOK", toleranceSeconds: 10 },
        },
      },
      { MY_GIT_WEBHOOK_SECRET: "x", HOOK: "y" },
    );
    expect(sources.get("my-git")).toMatchObject({
      agent: "repo-agent",
      secretVariable: "MY_GIT_WEBHOOK_SECRET",
    });
    expect(sources.get("my-git")?.keys).toHaveLength(1);
    expect(sources.get("stripe")).toMatchObject({
      secretVariable: "HOOK",
      agent: "webhook-agent",
      windowMs: 10_000,
    });
  });

  it("never show a secret", () => {
    const sources = create({}, { GITHUB_WEBHOOK_SECRET: "do-not-print-me" });
    expect(JSON.stringify(sources.get("github"))).not.toContain("do-not-print-me");
  });

  it.each([
    [{ sources: { mystery: {} } }, {}, /webhooks\.sources\.mystery\.scheme/],
    [{}, { DISCORD_WEBHOOK_SECRET: "short" }, /^DISCORD_WEBHOOK_SECRET: expected Discord's public key/],
    [{ sources: { github: { entity: "payload.repository" } } }, {}, /webhooks\.sources\.github\.entity/],
    [
      { sources: { github: { agnet: "x" } } },
      {},
      /unknown key "webhooks\.sources\.github\.agnet", did you mean "agent"/,
    ],
    [{ sources: { "Bad Name": { scheme: "github" } } }, {}, /webhooks\.sources/],
    [
      { sources: { github: { toleranceSeconds: 10 } } },
      {},
      /webhooks\.sources\.github\.toleranceSeconds.*signs no time/,
    ],
    [
      { sources: { a: { scheme: { type: "addresses" } } } },
      {},
      /webhooks\.sources\.a\.addresses: expected the addresses of the sender/,
    ],
    [{ sources: { github: { addresses: ["host.example"] } } }, {}, /webhooks\.sources\.github\.addresses/],
    [{ sources: { a: { scheme: { type: "apiKey" } } } }, {}, /webhooks\.sources\.a\.scheme/],
    [
      { sources: { a: { scheme: { type: "basic" } } } },
      { A_WEBHOOK_SECRET: "x" },
      /^A_WEBHOOK_SECRET: expected user:password/,
    ],
    [{ maxBodyBytes: 0 }, {}, /webhooks\.maxBodyBytes/],
    [{ publicUrl: "ftp://x" }, {}, /webhooks\.publicUrl/],
  ])("refuse %j with one line that names the key", (webhooks, environment, message) => {
    expect(() => create(webhooks, environment as Record<string, string>)).toThrow(message);
  });
});
