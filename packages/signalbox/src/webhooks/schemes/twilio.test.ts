/** Twilio's scheme against the `twilio` package. */
import twilio from "twilio";
import { expect, it } from "vitest";
import { twilioScheme } from "./index.ts";
import { ADDRESS, BODY, describeScheme, SECRET, verdict } from "./scheme-contract.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const expected = (fields: Record<string, unknown>) =>
  twilio.getExpectedTwilioSignature(SECRET, ADDRESS, fields);

describeScheme({
  title: "twilio with a form",
  scheme: twilioScheme,
  secret: SECRET,
  body: Buffer.from("AccountSid=AC1&Body=hello+w%C3%B6rld&MessageStatus=sent&To=%2B15550001"),
  extraHeaders: { "content-type": "application/x-www-form-urlencoded; charset=utf-8" },
  covers: "fields",
  vendor: (headers, body, url) =>
    twilio.validateRequest(
      SECRET,
      headers["x-twilio-signature"] ?? "",
      url,
      Object.fromEntries(new URLSearchParams(body.toString())),
    ),
});
describeScheme({
  title: "twilio with JSON",
  scheme: twilioScheme,
  secret: SECRET,
  extraHeaders: { "content-type": "application/json" },
  vendor: (headers, body, url) =>
    twilio.validateRequestWithBody(SECRET, headers["x-twilio-signature"] ?? "", url, body.toString()),
});

it("twilio accepts getExpectedTwilioSignature over a form with repeated fields", () => {
  const body = Buffer.from("b=2&a=1&a=0&a=1&empty=&sp+ace=x%26y");
  const signature = expected({ b: "2", a: ["1", "0", "1"], empty: "", "sp ace": "x&y" });
  const headers = { "x-twilio-signature": signature, ...FORM };
  expect(verdict(twilioScheme, { headers, body }, SECRET)).toBeNull();
});

it("twilio refuses a body that is neither a form nor hashed in the address, although the address is signed", () => {
  const headers = { "x-twilio-signature": expected({}), "content-type": "application/json" };
  expect(verdict(twilioScheme, { headers, body: BODY }, SECRET)).toBe("signature_malformed");
});

it("twilio refuses a form whose escapes decode to replacement characters", () => {
  const headers = { "x-twilio-signature": expected({ a: "\ufffd" }), ...FORM };
  expect(verdict(twilioScheme, { headers, body: Buffer.from("a=%FF") }, SECRET)).toBe("signature_malformed");
});
