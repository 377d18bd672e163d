/** What is listed of rejected deliveries: how many, and what of each. */
import { describe, expect, it } from "vitest";
import { webhookKeys } from "../config/webhook-keys.ts";
import { describeRejected, shownContentType } from "./rejected-request.ts";
import { RejectionBudget } from "./rejection-budget.ts";
import { createSources, type Source } from "./source.ts";

const sources = createSources(webhookKeys.parse({}), {});
const sourceOf = (name: string): Source => {
  const source = sources.get(name);
  if (source === undefined) throw new Error(`no source ${name}`);
  return source;
};
const describe1 = (name: string, headers: Record<string, string>, body = "{}", alsoRejected = 0) =>
  describeRejected(
    { source: sourceOf(name), headers, body: Buffer.from(body), address: "192.0.2.7" },
    alsoRejected,
  );

describe("a rejected request", () => {
  it("is described by names and the start of its signature, and not by the values of its headers", () => {
    const headers = {
      "user-agent": "GitHub-Hookshot/1",
      authorization: "Bearer top-secret",
      "x-hub-signature-256": `sha256=${"0123456789abcdef".repeat(4)}`,
    };
    const shown = describe1("github", headers, '{"zen":"Keep it simple"}', 3);
    expect(shown).toEqual({
      address: "192.0.2.7",
      userAgent: "GitHub-Hookshot/1",
      headerNames: ["user-agent", "authorization", "x-hub-signature-256"],
      signature: { header: "x-hub-signature-256", value: "sha256=012345678… (71 characters)" },
      expected: expect.stringContaining("x-hub-signature-256"),
      bodyPreview: '{"zen":"Keep it simple"}',
      alsoRejected: 3,
    });
    expect(JSON.stringify(shown)).not.toContain("top-secret");
  });

  it("of a header that may be the secret itself, only the length is kept", () => {
    expect(describe1("gitlab", { "x-gitlab-token": "the-real-secret" }).signature).toEqual({
      header: "x-gitlab-token",
      value: "(15 characters)",
    });
  });

  it("shows the signature of another scheme, and none if there is none", () => {
    expect(describe1("github", { "stripe-signature": "t=1,v1=ab" }).signature?.header).toBe(
      "stripe-signature",
    );
    expect(describe1("github", { host: "x" }).signature).toBeNull();
    expect(describe1("github", { "x-hub-signature-256": "ab" }).signature?.value).toBe("a… (2 characters)");
  });

  it("is short, whatever was sent: long names, bytes that are no text, control characters, fields with secrets", () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`${"n".repeat(100)}${i}`, "v"]));
    const long = describe1("github", { ...many, "user-agent": "u".repeat(5000) }, "x".repeat(100_000));
    expect(JSON.stringify(long).length).toBeLessThan(5000);
    expect(
      describeRejected(
        { source: sourceOf("github"), headers: {}, body: Buffer.from([0xff, 0xfe]), address: null },
        0,
      ).bodyPreview,
    ).toBeNull();
    expect(describe1("github", {}, `${"é".repeat(127)}xé`).bodyPreview).toBe(`${"é".repeat(127)}x`);
    expect(describe1("github", {}, "a\u001b[31mb").bodyPreview).toBe("a [31mb");
    expect(describe1("github", {}, '{"api_key":"k\\"ey","x":1,"token":"cut').bodyPreview).toBe(
      '{"api_key":"…","x":1,"token":"…',
    );
    expect(describe1("slack", {}, "token=abc&team=T1&user_password=p").bodyPreview).toBe(
      "token=…&team=T1&user_password=…",
    );
    expect(
      describe1("slack", {}, "payload=%7B%22token%22%3A%22abc%22%2C%22team%22%3A%22T1%22%7D").bodyPreview,
    ).toBe("payload=%7B%22token%22%3A%22…%22%2C%22team%22%3A%22T1%22%7D");
    expect(describe1("github", {}, '{"url":"https://x.test/?token=abc","zen":"short"}').bodyPreview).toBe(
      '{"url":"https://x.test/?token=…","zen":"short"}',
    );
    expect(shownContentType({ "content-type": `a\u009b${"b".repeat(5000)}` })).toBe(`a ${"b".repeat(198)}`);
  });
});

describe("the budget of rejected deliveries", () => {
  it("lists a burst, then five a second, and counts the others", () => {
    let now = 1_000_000;
    const budget = new RejectionBudget({ now: () => now });
    const listed = (count: number, source = "github") =>
      Array.from({ length: count }, () => budget.take(source)).filter((also) => also !== null).length;
    expect(listed(1000)).toBe(20);
    expect(budget.unlisted("github")).toBe(980);
    now += 1000;
    expect(budget.take("github")).toBe(980);
    expect(listed(1000)).toBe(4);
    // Another source is not hidden by the flood, and an operator who sends a test sees it.
    expect([budget.take("stripe"), budget.take("stripe")]).toEqual([0, null]);
    expect(budget.take("stripe", true)).toBe(1);
    // A clock that was set back.
    now -= 100_000;
    expect(listed(1000)).toBeLessThan(3);
    now += 1000;
    expect(listed(1000)).toBe(5);
  });
});
