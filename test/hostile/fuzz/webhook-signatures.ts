/**
 * Deliveries of every built-in source. The original is accepted. A delivery with a changed covered part, or with a
 * signed time outside the window, is refused, unless the scheme's rules make both the same message. No body with a
 * valid signature causes an internal error.
 */
import { request } from "node:http";
import { pick, type Random } from "../../support/ledger/random.ts";
import { startTestServer } from "../../support/test-server.ts";
import { chance, mutateOnce, randomBytes, repeat, upTo } from "./bytes.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";
import { checkLog } from "../support/check-log.ts";
import { HOST, NOW, type Post, type Sender, SENDERS } from "./webhook-senders.ts";

interface Input extends Post {
  readonly what: string;
  readonly expected: "accepted" | "refused" | "answered";
}

/** A change to a header must be a value that can be sent. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;
const ODD_BODIES = [
  "",
  "{",
  "null",
  "[]",
  "0",
  '"x"',
  "{}",
  '{"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
  `${'{"a":'.repeat(9000)}1${"}".repeat(9000)}`,
  '{"repository":{"full_name":""}}',
  '{"repository":null}',
  '{"repository":{"full_name":["x"]}}',
  '{"data":{"object":{"customer":{"id":1}}}}',
  '{"id":1e999,"type":{},"entity_id":"../.."}',
  '{"entity_id":"\\ud800"}',
  '{"entity_id":"\\u0000"}',
  '{"type":"url_verification","challenge":{}}',
  '{"type":"url_verification","challenge":"\\u2028<script>"}',
  '{"type":1}',
  '{"type":0}',
  '{"zen":1,"hook_id":{}}',
  "\xff\xfe{}",
  "\xef\xbb\xbf{}",
  "payload=%7B%7D",
  "payload=%",
  "a=b&a=c&__proto__=x",
  "%00=%00",
  '{"webhookTimestamp":"x","organizationId":[]}',
  `{"entity_id":"${"x".repeat(3000)}"}`,
  '{"event":{"data":null}}',
  '{"data":[],"object":"event","action":{}}',
  '{"type":"x","data":{"id":{"toString":null}}}',
];

export const webhookSignaturesTarget = defineTarget<Input>({
  name: "webhook-signatures",
  summary: "deliveries of all sources: changed, stale, or odd but rightly signed",
  shortRun: 1200,
  width: 8,
  generate(random) {
    const sender = pick(random, SENDERS);
    const path = `/webhooks/${sender.source}${chance(random, 0.2) ? `/e${upTo(random, 9)}` : ""}`;
    const original = post(sender, path, sender.body(upTo(random, 1e6)), NOW);
    const choice = random();
    // With an entity in the URL, a different entity in the payload is refused.
    if (choice < 0.1)
      return {
        ...post(sender, `/webhooks/${sender.source}`, original.body, NOW),
        what: "original",
        expected: "accepted",
      };
    if (choice < 0.4)
      return { ...post(sender, path, oddBody(random, sender), NOW), what: "odd body", expected: "answered" };
    if (choice < 0.5 && sender.signsTime)
      return { ...post(sender, path, original.body, staleTime(random)), what: "stale", expected: "refused" };
    return { ...changed(random, sender, original), expected: "refused" };
  },
  open,
});

function post(sender: Sender, address: string, body: string, atMs: number): Post {
  const query = sender.query?.(body);
  const path = query === undefined ? address : `${address}?${query}`;
  return { path, body, headers: { "content-type": "application/json", ...sender.headers(body, atMs, path) } };
}

function oddBody(random: Random, sender: Sender): string {
  if (chance(random, 0.2)) return randomBytes(random, 300);
  const body = chance(random, 0.5) ? pick(random, ODD_BODIES) : sender.body(upTo(random, 1e6));
  return repeat(random, 3, () => 0).reduce((text) => mutateOnce(random, text), body);
}

/** More than five minutes, in both directions. */
function staleTime(random: Random): number {
  const distance = 301_000 + upTo(random, chance(random, 0.5) ? 10_000 : 1e10);
  return chance(random, 0.5) ? NOW - distance : NOW + distance;
}

function changed(random: Random, sender: Sender, original: Post): Post & { what: string } {
  for (;;) {
    const parts = [
      ...sender.covered,
      ...(sender.signsBody ? ["body", "body"] : []),
      ...(sender.signsUrl ? ["path"] : []),
    ];
    const part = pick(random, parts);
    const next =
      part === "body"
        ? { ...original, body: mutateOnce(random, original.body) }
        : part === "path"
          ? { ...original, path: original.path + pick(random, ["?a=b", "/x", "x", "?", "%20"]) }
          : {
              ...original,
              headers: { ...original.headers, [part]: changedHeader(random, original.headers[part] ?? "") },
            };
    if (!sender.isSameMessage(original, next)) return { ...next, what: `changed ${part}` };
  }
}

function changedHeader(random: Random, value: string): string {
  for (;;) {
    const next = chance(random, 0.2)
      ? value === value.toUpperCase()
        ? value.toLowerCase()
        : value.toUpperCase()
      : mutateOnce(random, value);
    if (next !== value && SENDABLE.test(next)) return next;
  }
}

async function open(): Promise<Arena<Input>> {
  const environment = Object.assign({}, ...SENDERS.map(({ secrets }) => secrets)) as Record<string, string>;
  const server = await startTestServer({
    environment,
    clock: { now: () => NOW },
    file: {
      webhooks: {
        sources: Object.fromEntries(
          SENDERS.flatMap(({ source, config }) => (config === undefined ? [] : [[source, config]])),
        ),
      },
    },
  });
  return {
    async attempt(input) {
      const { status, text } = await send(server.url, input);
      const isAccepted = status >= 200 && status < 300;
      if (status >= 500) throw new Error(`${input.what}: ${status} ${text}`);
      if (input.expected === "accepted" && !isAccepted) throw new Error(`${input.what}: ${status} ${text}`);
      if (input.expected === "refused" && isAccepted)
        throw new Error(`${input.what}: accepted with ${status}`);
    },
    check: async () => checkLog(server.logs),
    close: () => server.stop(),
  };
}

function send(url: string, { path, headers, body }: Post): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const call = request(
      url + path,
      { method: "POST", path, headers: { ...headers, host: HOST, "content-length": body.length } },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("error", reject);
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text: text.slice(0, 300) }));
      },
    );
    call.on("error", reject);
    call.end(Buffer.from(body, "latin1"));
  });
}
