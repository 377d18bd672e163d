/** The values that an alert can have: times, and the names of what it watches. */
import { spanText } from "../../format/time.ts";
import { read, withQuery } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths } from "../../session/session.ts";
import type { Usage } from "../gateways/analytics/usage.ts";
import type { Source } from "../webhooks/webhook.ts";

type Options = readonly (readonly [value: string, title: string])[];

/** Seconds. */
export const WINDOWS = [60, 300, 900, 1800, 3600, 21_600, 86_400];
export const QUIET_PERIODS = [0, 300, 900, 3600, 14_400, 86_400];

/** The usual times, and the one that is set. */
export function spanOptions(seconds: readonly number[], current: string): Options {
  const all = new Set([...seconds, Number(current)]);
  return [...all]
    .toSorted((a, b) => a - b)
    .map((one) => [String(one), one === 0 ? "none" : spanText(one)] as const);
}

/** All names, and the one that is set even if it does not exist any more. */
export function nameOptions(all: string, names: readonly string[], current: string): Options {
  const shown = current === "" || names.includes(current) ? names : [current, ...names];
  return [["", all], ...shown.map((name) => [name, name] as const)];
}

interface Choices {
  readonly gateways: readonly string[];
  /** Those with calls in the last 30 days. */
  readonly providers: readonly string[];
  readonly sources: readonly string[];
}

const MAX_GATEWAYS = 100;
const PROVIDER_SPAN_MS = 30 * 86_400_000;

export function useChoices(isOnGateways: boolean, isOnSources: boolean): Choices {
  const { api } = useAccountPaths();
  const account = useAccount();
  const gateways = useResource(
    isOnGateways ? `gateway names ${account.id}` : null,
    async (signal) => (await account.gateways.list({ per_page: MAX_GATEWAYS }, { signal }).page()).items,
  );
  const usage = useResource(isOnGateways ? `provider names ${account.id}` : null, (signal) =>
    read<Usage[]>(
      withQuery(api("ai-gateway", "usage"), {
        start: new Date(Date.now() - PROVIDER_SPAN_MS).toISOString(),
        group_by: "provider",
      }),
      signal,
    ),
  );
  const path = api("webhooks", "sources");
  const sources = useResource(isOnSources ? path : null, (signal) => read<Source[]>(path, signal));
  return {
    gateways: (gateways.value ?? []).map(({ id }) => id),
    providers: (usage.value ?? []).flatMap(({ provider }) =>
      provider === undefined || provider === "" ? [] : [provider],
    ),
    sources: (sources.value ?? []).map(({ name }) => name),
  };
}
