/** What is wrong, in order of urgency: the answer to "is anything wrong?" in one line. */
import type { Alert, ClusterNode, ClusterStatus, DeliverySummary, Problems } from "@signalbox/client";
import { count, plural, share } from "../../format/number.ts";
import type { NearLimit } from "./use-limits.ts";
import type { RangeUsage } from "./use-usage.ts";

type ProblemTotals = Problems["totals"];

export interface Finding {
  readonly tone: "bad" | "warn";
  readonly text: string;
  /** Page below the account, with its query. */
  readonly to: readonly string[];
  readonly query?: string;
}

export interface Health {
  readonly usage?: RangeUsage | undefined;
  readonly alerts?: readonly Alert[] | undefined;
  readonly limits?: readonly NearLimit[] | undefined;
  readonly deliveries?: DeliverySummary | undefined;
  readonly problems?: ProblemTotals | undefined;
  readonly cluster?: { readonly status: ClusterStatus; readonly nodes: readonly ClusterNode[] } | undefined;
}

/** A few failed calls are normal; a share of this size is not, if it is a share of enough calls. */
const HIGH_ERROR_SHARE = 0.05;
const MIN_CALLS = 20;

export function findingsOf(health: Health): Finding[] {
  const all = [
    ...ofCluster(health.cluster),
    ...ofAlerts(health.alerts ?? []),
    ...ofInstances(health.problems),
    ...ofDeliveries(health.deliveries),
    ...ofLimits(health.limits ?? []),
    ...ofCalls(health.usage),
  ];
  return [...all.filter(({ tone }) => tone === "bad"), ...all.filter(({ tone }) => tone === "warn")];
}

function ofCluster(cluster: Health["cluster"]): Finding[] {
  if (cluster === undefined) return [];
  const { status, nodes } = cluster;
  const notReady = nodes.filter(({ state, problems }) => state === "up" && problems?.length !== 0);
  const unsafe = status.settings.filter(({ is_safe: isSafe }) => !isSafe);
  const to = ["cluster"];
  return [
    ...some(status.lost_commits.count, "bad", () => "PostgreSQL has lost commits", to),
    ...some(status.lost_nodes.length, "bad", (n) => `${plural(n, "node")} dead`, to),
    ...some(notReady.length, "bad", (n) => `${plural(n, "node")} not ready`, to),
    ...some(unsafe.length, "warn", (n) => `${plural(n, "unsafe setting")} of PostgreSQL`, to),
  ];
}

function ofAlerts(alerts: readonly Alert[]): Finding[] {
  const firing = alerts.filter(({ enabled, status }) => enabled && status === "firing");
  return some(
    firing.length,
    "bad",
    (n) => (n === 1 ? `alert ${firing[0]?.name ?? ""} is firing` : `${n} alerts are firing`),
    ["alerts"],
  );
}

function ofInstances(totals: ProblemTotals | undefined): Finding[] {
  if (totals === undefined) return [];
  const to = ["problems"];
  const inInstances = (n: number) => (n === 1 ? "in one instance" : `in ${count(n)} instances`);
  return [
    ...some(totals.stuck, "bad", (n) => plural(n, "stuck instance"), to, "problem=stuck"),
    ...some(
      totals.dead_letters,
      "bad",
      (n) => `${plural(n, "dead letter")} ${inInstances(totals.dead_letter_instances)}`,
      to,
      "problem=dead_letters",
    ),
    ...some(
      totals.retrying,
      "warn",
      (n) => `${plural(n, "item")} retrying ${inInstances(totals.retrying_instances)}`,
      to,
      "problem=retrying",
    ),
  ];
}

function ofDeliveries(summary: DeliverySummary | undefined): Finding[] {
  return some(
    summary?.totals.failing ?? 0,
    "bad",
    (n) => (n === 1 ? "one delivery failed" : `${count(n)} deliveries failed`),
    ["webhooks", "deliveries"],
    "status=failing",
  );
}

function ofLimits(limits: readonly NearLimit[]): Finding[] {
  const usedUp = limits.filter(({ usedShare }) => usedShare >= 1).length;
  return [
    ...some(usedUp, "bad", (n) => `${plural(n, "limit")} used up`, []),
    ...some(limits.length - usedUp, "warn", (n) => `${plural(n, "limit")} nearly used up`, []),
  ];
}

function ofCalls(usage: RangeUsage | undefined): Finding[] {
  const total = usage?.total ?? null;
  if (total === null || total.calls < MIN_CALLS || total.errors < HIGH_ERROR_SHARE * total.calls) return [];
  return [
    {
      tone: "warn",
      text: `${share(total.errors, total.calls)} of the calls failed`,
      to: ["logs"],
      query: "outcome=error",
    },
  ];
}

function some(
  n: number,
  tone: Finding["tone"],
  text: (n: number) => string,
  to: readonly string[],
  query?: string,
): Finding[] {
  return n === 0 ? [] : [{ tone, text: text(n), to, ...(query === undefined ? {} : { query }) }];
}
