/** Standard Webhooks, Svix and GitLab's signing tokens against the `standardwebhooks` and `svix` packages. */
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { expect, it } from "vitest";
import { gitlabScheme, standardScheme, svixScheme } from "./index.ts";
import { ADDRESS, BODY, describeScheme, SECRET, STANDARD_SECRET, verdict } from "./scheme-contract.ts";

const standard = {
  secret: STANDARD_SECRET,
  otherSecret: "whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXI=",
  isList: true,
};

describeScheme({ title: "standard", scheme: standardScheme, ...standard });
describeScheme({ title: "svix", scheme: svixScheme, ...standard });
describeScheme({ title: "gitlab with a token", scheme: gitlabScheme, secret: SECRET, covers: "nothing" });
describeScheme({ title: "gitlab with a signing token", scheme: gitlabScheme, ...standard });

// The packages use the system's time.
it("standardwebhooks and svix accept what the schemes sign, and the schemes what the packages sign", () => {
  const now = Date.now();
  const time = new Date(Math.floor(now / 1000) * 1000);
  for (const [scheme, prefix, vendor] of [
    [standardScheme, "webhook", new StandardWebhook(STANDARD_SECRET)],
    [svixScheme, "svix", new SvixWebhook(STANDARD_SECRET)],
    [svixScheme, "webhook", new SvixWebhook(STANDARD_SECRET)],
    [gitlabScheme, "webhook", new StandardWebhook(STANDARD_SECRET)],
  ] as const) {
    const signature = vendor.sign("msg_1", time, BODY.toString());
    const headers = {
      [`${prefix}-id`]: "msg_1",
      [`${prefix}-timestamp`]: String(time.getTime() / 1000),
      [`${prefix}-signature`]: `v1a,unknown v1,${"A".repeat(43)}= ${signature}`,
    };
    expect(verdict(scheme, { headers, body: BODY, now }, STANDARD_SECRET)).toBeNull();
    const ours = scheme.sign({ secret: STANDARD_SECRET, body: BODY, now, deliveryId: "msg_1", url: ADDRESS });
    expect(vendor.verify(BODY.toString(), ours.headers)).toEqual(JSON.parse(BODY.toString()));
  }
});

it("gitlab refuses a signing token that is sent as a plain token", () => {
  const headers = { "x-gitlab-token": STANDARD_SECRET };
  expect(verdict(gitlabScheme, { headers, body: BODY }, STANDARD_SECRET)).toBe("signature_mismatch");
});
