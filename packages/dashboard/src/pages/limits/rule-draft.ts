/** A limit of a gateway or account, as a form edits it. */
import type { SpendRule } from "@signalbox/client";
import { parseLines } from "../../format/loose-value.ts";
import { mergeEdit } from "../../format/merge-edit.ts";
import { fromPeriod, MONTHLY, type Period, toPeriod } from "./period.ts";

export interface RuleDraft {
  readonly id: string;
  readonly isEnabled: boolean;
  readonly limitType: SpendRule["limitType"];
  readonly limit: string;
  readonly period: Period;
  /** One glob in each line. */
  readonly models: string;
  readonly providers: string;
  /** `key` counts each value separately; `key=a, b` applies to these values only. */
  readonly metadata: string;
}

export const BLANK_RULE: RuleDraft = {
  id: "",
  isEnabled: true,
  limitType: "cost",
  limit: "",
  period: MONTHLY,
  models: "",
  providers: "",
  metadata: "",
};

export function toRuleDraft(rule: SpendRule): RuleDraft {
  return {
    id: rule.id ?? "",
    isEnabled: rule.enabled !== false,
    limitType: rule.limitType,
    limit: String(rule.limit),
    period: toPeriod({
      window: rule.window ?? null,
      isSliding: rule.technique === "sliding",
      timezone: rule.timezone,
    }),
    models: rule.model?.values.join("\n") ?? "",
    providers: rule.provider?.values.join("\n") ?? "",
    metadata: Object.entries(rule.metadata ?? {})
      .map(([key, one]) => (one.mode === "partition" ? key : `${key}=${one.values.join(", ")}`))
      .join("\n"),
  };
}

export function fromRuleDraft(draft: RuleDraft): SpendRule {
  const { window, isSliding, timezone } = fromPeriod(draft.period);
  const models = parseLines(draft.models);
  const providers = parseLines(draft.providers);
  const metadata = parseLines(draft.metadata).map(metadataPart);
  return {
    ...(draft.id.trim() === "" ? {} : { id: draft.id.trim() }),
    enabled: draft.isEnabled,
    limitType: draft.limitType,
    limit: Number(draft.limit),
    ...(draft.limitType === "parallel" ? {} : { window }),
    ...(draft.limitType !== "parallel" && typeof window === "number"
      ? { technique: isSliding ? "sliding" : "fixed" }
      : {}),
    ...(timezone === undefined || draft.limitType === "parallel" ? {} : { timezone }),
    ...(models.length === 0 ? {} : { model: { mode: "filter", values: models } }),
    ...(providers.length === 0 ? {} : { provider: { mode: "filter", values: providers } }),
    ...(metadata.length === 0 ? {} : { metadata: Object.fromEntries(metadata) }),
  };
}

/** The rules with an edited one; members that were not edited keep their present values, such as credit added since. */
export function withEditedRule(
  rules: readonly SpendRule[],
  before: SpendRule,
  edited: SpendRule,
): readonly SpendRule[] {
  const asDrafted = (rule: SpendRule) => fromRuleDraft(toRuleDraft(rule));
  const now = rules.find(({ id }) => id === before.id);
  const merged = mergeEdit(
    asDrafted(before),
    edited,
    now === undefined ? undefined : asDrafted(now),
    `limit ${before.id ?? ""}`,
  );
  return rules.map((rule) => (rule === now ? merged : rule));
}

function metadataPart(line: string): [string, NonNullable<SpendRule["metadata"]>[string]] {
  const at = line.indexOf("=");
  if (at === -1) return [line, { mode: "partition" }];
  const values = line
    .slice(at + 1)
    .split(",")
    .map((value) => value.trim())
    .filter((value) => value !== "");
  return [line.slice(0, at).trim(), { mode: "filter", values }];
}
