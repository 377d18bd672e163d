/** Twilio: messages and calls, as forms or (with `bodySHA256` in the address) JSON. One instance for each Twilio account. */
import { twilioScheme } from "../schemes/index.ts";
import { firstIdAt, firstTextAt, parseRule, payloadRule, rules, textAt, words } from "./rule.ts";
import type { SourceKind } from "./source-kind.ts";

const STATUS = [
  "MessageStatus",
  "SmsStatus",
  "CallStatus",
  "RecordingStatus",
  "StatusCallbackEvent",
] as const;
const SUBJECT = ["MessageSid", "SmsSid", "CallSid", "RecordingSid"] as const;
const ACCOUNT = ["AccountSid", "account_sid", "AccountId"] as const;
/** The id that belongs to each status. */
const SUBJECT_OF_STATUS: readonly (readonly [readonly string[], readonly [string, ...string[]]])[] = [
  [
    ["MessageStatus", "SmsStatus"],
    ["MessageSid", "SmsSid", "SmsMessageSid"],
  ],
  [["RecordingStatus"], ["RecordingSid"]],
  [["CallStatus"], ["CallSid"]],
];

export const twilio: SourceKind = {
  name: "twilio",
  scheme: twilioScheme,
  takesForms: true,
  entity: rules(...ACCOUNT.map((name) => `body:${name}`)),
  /**
   * The signature of a form has no separator between the address and the fields, so the first fields of a captured form could be moved into
   * the address. Twilio sorts the fields: `AccountSid` is the first, and the id of the message or call follows.
   */
  missing({ headers, payload }) {
    if (headers["content-type"]?.toLowerCase().startsWith("application/x-www-form-urlencoded") !== true)
      return null;
    if (firstTextAt(payload, ...ACCOUNT) === null) return "AccountSid";
    const subject = SUBJECT_OF_STATUS.find(([status]) => firstTextAt(payload, ...status) !== null);
    return subject === undefined || firstTextAt(payload, ...subject[1]) !== null ? null : subject[1][0];
  },
  eventType: [
    payloadRule("body: kind and status of the message or call", ({ payload }) => {
      const status = firstTextAt(payload, ...STATUS);
      return status === null ? null : `${kindOf(payload)}.${status}`;
    }),
    ...rules("body:EventType", "body:Type", "body:type"),
  ],
  deliveryId: [
    parseRule("header:i-twilio-idempotency-token"),
    // A message reports each status once; with its id alone every status after the first would be a duplicate.
    payloadRule("body: id and status of the message or call", (delivery) => {
      const sid = firstIdAt(delivery, ...SUBJECT);
      const status = firstIdAt(delivery, ...STATUS);
      return sid === null || status === null ? null : `${sid}.${status}`;
    }),
    ...rules("body:Sid", "body:id"),
  ],
  describe({ payload }, type) {
    const from = textAt(payload, "From");
    const to = textAt(payload, "To");
    return {
      title: words(type, from && `from ${from}`, to && `to ${to}`),
      description: firstTextAt(payload, "Body", "ErrorMessage", "ErrorCode"),
      url: firstTextAt(payload, "MediaUrl0", "RecordingUrl"),
      actor: from,
    };
  },
  sample: ({ entity, deliveryId }) => ({
    headers: { "i-twilio-idempotency-token": deliveryId },
    contentType: "application/x-www-form-urlencoded",
    body: new URLSearchParams({
      AccountSid: entity,
      MessageSid: "SM00000000000000000000000000000000",
      MessageStatus: "delivered",
      From: "+15550001",
      To: "+15550002",
      Body: "A sample message",
    }).toString(),
  }),
};

function kindOf(payload: unknown): string {
  return firstTextAt(payload, "CallSid") !== null && firstTextAt(payload, "MessageSid", "SmsSid") === null
    ? "call"
    : "message";
}
