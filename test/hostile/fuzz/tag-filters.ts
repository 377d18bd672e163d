/**
 * Tag filters, valid and invalid, on the lists of resources, keys and values. Each is answered with the code that a
 * second implementation of the contract's rules gives, and finds what a naive evaluation of these rules finds.
 */
import { pick, type Random } from "../../support/ledger/random.ts";
import { startTestServer } from "../../support/test-server.ts";
import { checkLog } from "../support/check-log.ts";
import { chance, mutateOnce, repeat, upTo } from "./bytes.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";

interface Input {
  readonly list: "resources" | "keys";
  readonly filters: readonly string[];
}

type Tags = Readonly<Record<string, string>>;

const KEYS = ["env", "Env", "team", "a.b-c_d", "ключ", "__proto__", "constructor", "x"];
const VALUES = [
  "",
  "prod",
  "PROD",
  "a,b",
  "a\\",
  "ß",
  "x=y",
  "!z",
  "\0",
  "%",
  "é",
  "𝄞",
  "'; DROP TABLE tag_resource; --",
];
/** The same for every run: resource i has some of the keys with some of the values. */
const RESOURCES: readonly { readonly id: string; readonly tags: Tags }[] = Array.from(
  { length: 60 },
  (_, i) => ({
    id: `r${i}`,
    tags: Object.fromEntries(
      KEYS.flatMap((key, k) =>
        (i >> (k % 6)) % 2 === 0 || i % 7 === k ? [[key, VALUES[(i * 5 + k * 3) % VALUES.length] ?? ""]] : [],
      ),
    ),
  }),
);

export const tagFiltersTarget = defineTarget<Input>({
  name: "tag-filters",
  summary: "tag filters against a naive evaluation",
  shortRun: 1000,
  width: 4,
  generate: (random) => ({
    list: pick(random, ["resources", "resources", "keys"] as const),
    filters: chance(random, 0.03)
      ? Array.from({ length: 19 + upTo(random, 4) }, () => "env")
      : repeat(random, 4, () => filter(random)),
  }),
  open,
});

function filter(random: Random): string {
  const key = pick(random, KEYS);
  const values = (max: number) =>
    [pick(random, VALUES), ...repeat(random, max, () => pick(random, VALUES))]
      .map((value) => value.replaceAll(/[\\,]/g, String.raw`\$&`))
      .join(",");
  const text = pick(random, [
    key,
    `!${key}`,
    `${key}=${values(3)}`,
    `${key}!=${values(3)}`,
    `${key}=${values(11)}`,
    "k".repeat(255 + upTo(random, 3)),
    `x=${"v".repeat(1023 + upTo(random, 3))}`,
  ]);
  return (chance(random, 0.2) ? mutateOnce(random, text) : text).toWellFormed();
}

/** Placeholders for escaped characters; generated filters contain none of them. */
const COMMA = "\ue000";
const BACKSLASH = "\ue001";

/** One filter according to the contract: its meaning or its error code. */
function read(text: string): number | ((tags: Tags) => boolean) {
  const match = /^(!?)([^=]*?)(?:(!?)=([^]*))?$/.exec(text);
  const [, bang = "", key = "", not = "", rest] = match ?? [];
  if (key === "" || (bang === "!" && rest !== undefined)) return 1007;
  if (Array.from(key).length > 256) return 1011;
  if (!/^[\p{L}\p{Nd}_.-]+$/u.test(key)) return 1014;
  const has = (tags: Tags) => Object.hasOwn(tags, key);
  if (rest === undefined) return (tags) => has(tags) === (bang === "");
  const parts = rest
    .replaceAll(/\\([\\,])/g, (_, escaped: string) => (escaped === "," ? COMMA : BACKSLASH))
    .split(",")
    .map((value) => value.replaceAll(COMMA, ",").replaceAll(BACKSLASH, "\\"));
  if (parts.length > 10) return 1013;
  if (parts.some((value) => Array.from(value).length > 1024)) return 1012;
  return (tags) => (has(tags) && parts.includes(tags[key] ?? "")) === (not === "");
}

async function open(): Promise<Arena<Input>> {
  const server = await startTestServer();
  const path = "/accounts/default/tags";
  const items = RESOURCES.map(({ id, tags }) => ({ resource_type: "worker", resource_id: id, tags }));
  await server.api("POST", `${path}/bulk`, { items });
  return {
    async attempt({ list, filters }) {
      const query = new URLSearchParams(filters.map((text): [string, string] => ["tag", text]));
      const { status, body } = await server.api("GET", `${path}/${list}?${query.toString()}`);
      const answer = body as { errors: { code: number }[]; result: unknown[] };
      const readings = filters.map(read);
      const expected = filters.length > 20 ? 1010 : readings.find((reading) => typeof reading === "number");
      const given = status === 200 ? undefined : answer.errors[0]?.code;
      if (given !== expected) throw new Error(`${status} with code ${given}, expected ${expected}`);
      if (given !== undefined) return;
      const found = RESOURCES.filter(({ tags }) =>
        readings.every((matches) => typeof matches === "function" && matches(tags)),
      ).filter(({ tags }) => Object.keys(tags).length > 0);
      const wanted =
        list === "resources"
          ? found.map(({ id }) => id)
          : [...new Set(found.flatMap(({ tags }) => Object.keys(tags)))].sort((a, b) =>
              Buffer.compare(Buffer.from(a), Buffer.from(b)),
            );
      const shown =
        list === "resources" ? answer.result.map((one) => (one as { id: string }).id) : answer.result;
      if (JSON.stringify(shown) !== JSON.stringify(wanted))
        throw new Error(`found ${JSON.stringify(shown)}, expected ${JSON.stringify(wanted)}`);
    },
    check: async () => checkLog(server.logs),
    close: () => server.stop(),
  };
}
