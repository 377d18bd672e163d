import { expect, it } from "vitest";
import { checkConfigFile } from "./read-config-file.ts";

it.each([
  [{ tags: { missing: 403 } }, "tags.missing: expected 500, 404 or 200, found 403"],
  [
    { webhooks: { sources: { x: { scheme: "nope" } } } },
    'webhooks.sources.x.scheme: expected generic, github, stripe, slack, twilio, shopify, standard, svix, gitlab, linear, pagerduty, discord, sendgrid, paypal, sns or an object, found "nope"',
  ],
  [
    { webhooks: { sources: { x: { scheme: { header: "a b" } } } } },
    'webhooks.sources.x.scheme.header: expected a header name, found "a b"',
  ],
  [
    { webhooks: { sources: { x: { scheme: { header: "a", prefx: "" } } } } },
    'unknown key "webhooks.sources.x.scheme.prefx"',
  ],
  [
    { webhooks: { sources: { x: { entity: 7 } } } },
    "webhooks.sources.x.entity: expected a string or an array, found 7",
  ],
  [{ tags: { resourceTypes: [7] } }, "tags.resourceTypes.0: expected a string or an object, found 7"],
  [
    { tags: { resourceTypes: ["No"] } },
    'tags.resourceTypes.0: expected lower-case letters, digits and _, found "No"',
  ],
  [
    { agents: { access: "all" } },
    'agents.access: Invalid option: expected one of "token"|"public"|"worker", found "all"',
  ],
])("refuses %j with the expected and the found value", (content, message) => {
  expect(() => checkConfigFile(content, "file")).toThrow(`file: ${message}`);
});
