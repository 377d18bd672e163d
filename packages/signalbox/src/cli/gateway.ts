/** `signalbox gateway …` */
import { type Command, type CommandContext, UsageError } from "./command.ts";
import type { ManagementClient } from "./management-client.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

interface ShownGateway {
  readonly id: string;
  readonly authentication: boolean;
  readonly collect_logs: boolean;
  readonly cache_ttl: number | null;
  readonly rate_limiting_limit: number | null;
  readonly rate_limiting_interval: number | null;
  readonly created_at: string;
  readonly [setting: string]: unknown;
}

/** One option of `create` and `set`: the setting it changes and how its text is read. */
interface SettingOption {
  readonly option: string;
  readonly value: string;
  readonly setting: string;
  readonly summary: string;
  readonly read: (text: string, option: string) => unknown;
}

const SETTINGS: readonly SettingOption[] = [
  setting("authentication", "on|off", "authentication", "require a token on every call", toSwitch),
  setting("logs", "on|off", "collect_logs", "keep a row for every call", toSwitch),
  setting("cache-ttl", "SECONDS", "cache_ttl", "cache responses; 0 switches it off", toCount),
  setting("rate-limit", "CALLS", "rate_limiting_limit", "calls per interval; 0 switches it off", toCount),
  setting("rate-interval", "SECONDS", "rate_limiting_interval", "length of the interval", toCount),
  setting("rate-technique", "fixed|sliding", "rate_limiting_technique", "how the interval moves", toText),
  setting("max-attempts", "N", "retry_max_attempts", "attempts per call, 1 to 5", toCount),
  setting("retry-delay", "MS", "retry_delay", "wait between attempts", toCount),
  setting("backoff", "KIND", "retry_backoff", "constant, linear or exponential", toText),
  setting("max-logs", "ROWS", "log_management", "rows kept; the oldest go first", toCount),
];

const SETTING_OPTIONS = SETTINGS.map(({ option, value, summary }) => ({ name: option, value, summary }));
const PAGE_SIZE = 100;

export const gatewayCommands: readonly Command[] = [
  {
    words: ["gateway", "list"],
    summary: "List an account's gateways.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const gateways = await listAll(await context.client(), gatewaysPath(context));
      context.print(gateways, (rows) =>
        table(
          ["id", "authentication", "logs", "cache", "rate limit", "created"],
          rows.map((row) => [
            row.id,
            onOff(row.authentication),
            onOff(row.collect_logs),
            row.cache_ttl ? `${row.cache_ttl} s` : "off",
            row.rate_limiting_limit && row.rate_limiting_interval
              ? `${row.rate_limiting_limit} per ${row.rate_limiting_interval} s`
              : "off",
            row.created_at,
          ]),
          "no gateways",
        ),
      );
    },
  },
  {
    words: ["gateway", "create"],
    positionals: ["<id>"],
    summary: "Create a gateway.",
    options: [...SETTING_OPTIONS, ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const client = await context.client();
      const body = { id: context.positionals[0], ...givenSettings(context) };
      const gateway = await client.request<ShownGateway>("POST", gatewaysPath(context), body);
      context.print(gateway, ({ id }) => `created gateway ${id}\n`);
    },
  },
  {
    words: ["gateway", "show"],
    positionals: ["<id>"],
    summary: "Show a gateway's settings.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const gateway = await (await context.client()).request<ShownGateway>("GET", gatewayPath(context));
      context.print(gateway, showSettings);
    },
  },
  {
    words: ["gateway", "set"],
    positionals: ["<id>"],
    summary: "Change a gateway's settings, e.g. --authentication on.",
    options: [...SETTING_OPTIONS, ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const changes = givenSettings(context);
      if (Object.keys(changes).length === 0) {
        throw new UsageError("give at least one setting, e.g. --authentication on");
      }
      const client = await context.client();
      const gateway = await client.request<ShownGateway>("PUT", gatewayPath(context), changes);
      context.print(gateway, showSettings);
    },
  },
  {
    words: ["gateway", "delete"],
    positionals: ["<id>"],
    summary: "Delete a gateway with its logs and tokens.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const gateway = await (await context.client()).request<ShownGateway>("DELETE", gatewayPath(context));
      context.print(gateway, ({ id }) => `deleted gateway ${id}\n`);
    },
  },
  {
    words: ["gateway", "token"],
    positionals: ["<id>"],
    summary: "Create a token with Run permission for one gateway and print it, once.",
    options: [
      { name: "name", value: "NAME", summary: "what the token is for" },
      { name: "expires-at", value: "TIME", summary: "ISO 8601 time after which it stops working" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const client = await context.client();
      const token = await client.request<{ token: string }>("POST", `${gatewayPath(context)}/tokens`, {
        name: context.option("name"),
        expires_at: context.option("expires-at"),
      });
      context.print(token, ({ token: text }) => `${text}\n`);
    },
  },
];

function setting(
  option: string,
  value: string,
  name: string,
  summary: string,
  read: SettingOption["read"],
): SettingOption {
  return { option, value, setting: name, summary, read };
}

function givenSettings(context: CommandContext): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const { option, setting, read } of SETTINGS) {
    const text = context.option(option);
    if (text !== undefined) given[setting] = read(text, option);
  }
  return given;
}

async function listAll(client: ManagementClient, path: string): Promise<ShownGateway[]> {
  const all: ShownGateway[] = [];
  for (let page = 1; ; page++) {
    const rows = await client.request<ShownGateway[]>("GET", `${path}?page=${page}&per_page=${PAGE_SIZE}`);
    all.push(...rows);
    if (rows.length < PAGE_SIZE) return all;
  }
}

function showSettings(gateway: ShownGateway): string {
  return Object.entries(gateway)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}\n`)
    .join("");
}

function toSwitch(text: string, option: string): boolean {
  if (text === "on") return true;
  if (text === "off") return false;
  throw new UsageError(`--${option}: expected on or off, found "${text}"`);
}

function toCount(text: string, option: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new UsageError(`--${option}: expected a whole number, found "${text}"`);
  return Number(text);
}

function toText(text: string): string {
  return text;
}

function onOff(value: boolean): string {
  return value ? "on" : "off";
}

function gatewaysPath(context: CommandContext): string {
  return `/accounts/${encodeURIComponent(context.option("account") ?? "default")}/ai-gateway/gateways`;
}

function gatewayPath(context: CommandContext): string {
  return `${gatewaysPath(context)}/${encodeURIComponent(context.positionals[0] ?? "")}`;
}
