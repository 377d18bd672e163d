/** `signalbox gateway …` */
import type { Gateway, GatewaySettings } from "@signalbox/client";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table, toCell } from "./table.ts";

/** One option of `create` and `set`: the setting that it changes and the parser of its text. */
interface SettingOption {
  readonly option: string;
  readonly value: string;
  readonly setting: string;
  readonly summary: string;
  readonly read: (text: string, option: string) => unknown;
}

const SETTINGS: readonly SettingOption[] = [
  setting("authentication", "on|off", "authentication", "require a token on every call", toSwitch),
  setting(
    "anonymous-keys",
    "on|off",
    "allow_anonymous_keys",
    "use stored provider keys also for calls without a token",
    toSwitch,
  ),
  setting(
    "require-keys",
    "on|off",
    "byok_only",
    "refuse calls without a credential of their provider",
    toSwitch,
  ),
  setting(
    "trust-custom-cost",
    "on|off",
    "trust_custom_cost",
    "count the cost that callers state in limits",
    toSwitch,
  ),
  setting("logs", "on|off", "collect_logs", "log every call", toSwitch),
  setting(
    "cache-ttl",
    "SECONDS",
    "cache_ttl",
    "cache responses for this time; 0 disables the cache",
    toCount,
  ),
  setting(
    "rate-limit",
    "CALLS",
    "rate_limiting_limit",
    "maximum calls per interval; 0 disables the limit",
    toCount,
  ),
  setting("rate-interval", "SECONDS", "rate_limiting_interval", "length of the interval", toCount),
  setting("rate-technique", "fixed|sliding", "rate_limiting_technique", "fixed or sliding interval", toText),
  setting("max-attempts", "N", "retry_max_attempts", "attempts per call, 1 to 5", toCount),
  setting("retry-delay", "MS", "retry_delay", "delay between attempts", toCount),
  setting("backoff", "constant|linear|exponential", "retry_backoff", "how the delay grows", toText),
  setting(
    "max-logs",
    "ROWS",
    "log_management",
    "maximum number of log rows; the oldest are deleted first",
    toCount,
  ),
];

const SETTING_OPTIONS = SETTINGS.map(({ option, value, summary }) => ({ name: option, value, summary }));
const PAGE_SIZE = 100;

export const gatewayCommands: readonly Command[] = [
  {
    words: ["gateway", "list"],
    summary: "List the gateways of an account.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const { gateways: api } = await context.account();
      const gateways = await api.list({ per_page: PAGE_SIZE }).all();
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
      const { gateways } = await context.account();
      const gateway = await gateways.create({ id: idOf(context), ...givenSettings(context) });
      context.print(gateway, ({ id }) => `created gateway ${id}\n`);
    },
  },
  {
    words: ["gateway", "show"],
    positionals: ["<id>"],
    summary: "Show the settings of a gateway.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const gateway = await (await context.account()).gateways.get(idOf(context));
      context.print(gateway, showSettings);
    },
  },
  {
    words: ["gateway", "set"],
    positionals: ["<id>"],
    summary: "Change the settings of a gateway, e.g. --authentication on.",
    options: [...SETTING_OPTIONS, ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const changes = givenSettings(context);
      if (Object.keys(changes).length === 0) {
        throw new UsageError("give at least one setting, e.g. --authentication on");
      }
      const gateway = await (await context.account()).gateways.update(idOf(context), changes);
      context.print(gateway, (changed) => showSome(changed, Object.keys(changes)));
    },
  },
  {
    words: ["gateway", "delete"],
    positionals: ["<id>"],
    summary: "Delete a gateway with its logs and tokens.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const gateway = await (await context.account()).gateways.delete(idOf(context));
      context.print(gateway, ({ id }) => `deleted gateway ${id}\n`);
    },
  },
  {
    words: ["gateway", "token"],
    positionals: ["<id>"],
    summary:
      "Create a token with the gateway.run permission for a gateway and print it. It cannot be shown again.",
    options: [
      { name: "name", value: "NAME", summary: "name of the token" },
      { name: "expires-at", value: "TIME", summary: "ISO 8601 time at which the token expires" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const { gateways } = await context.account();
      const token = await gateways.createToken(idOf(context), {
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

function givenSettings(context: CommandContext): Partial<GatewaySettings> {
  const settings: Record<string, unknown> = {};
  for (const { option, setting, read } of SETTINGS) {
    const text = context.option(option);
    if (text !== undefined) settings[setting] = read(text, option);
  }
  return settings;
}

function showSettings(gateway: Gateway): string {
  return Object.entries(gateway)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}\n`)
    .join("");
}

/** The settings that a command has changed; `gateway show` prints all. */
function showSome(gateway: Gateway, names: readonly string[]): string {
  const settings = gateway as unknown as Readonly<Record<string, unknown>>;
  return names
    .map((name) => {
      const value = settings[name];
      return `${name}: ${typeof value === "boolean" ? onOff(value) : toCell(value)}\n`;
    })
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

function idOf(context: CommandContext): string {
  return context.positionals[0] ?? "";
}
