/** A guardrail, as a form edits it. */
import type { GuardrailAction, GuardrailPlace, GuardrailRule } from "@signalbox/client";
import { parseLines } from "../../format/loose-value.ts";
import { mergeEdit } from "../../format/merge-edit.ts";

export const KINDS = {
  pii: ["email", "phone", "card", "iban", "national_id", "passport", "ip"],
  secrets: ["key", "private_key", "entropy"],
} as const;

export interface RuleDraft {
  readonly id: string;
  readonly isEnabled: boolean;
  readonly type: GuardrailRule["type"];
  readonly places: readonly GuardrailPlace[];
  readonly action: GuardrailAction;
  readonly pattern: string;
  /** One in each line, as `allow` and `categories`. */
  readonly words: string;
  readonly kinds: readonly string[];
  readonly allow: string;
  readonly model: string;
  readonly format: "guard" | "injection" | "moderation";
  readonly instructions: string;
  readonly categories: string;
  readonly threshold: string;
  readonly url: string;
  readonly timeoutMs: string;
  readonly stream: "window" | "hold";
  readonly onFailure: "block" | "allow";
  readonly onMedia: "block" | "allow";
  readonly logs: "full" | "masked";
}

export const BLANK_RULE: RuleDraft = {
  id: "",
  isEnabled: true,
  type: "pii",
  places: ["prompt", "response"],
  action: "mask",
  pattern: "",
  words: "",
  kinds: KINDS.pii,
  allow: "",
  model: "",
  format: "guard",
  instructions: "",
  categories: "",
  threshold: "0.5",
  url: "",
  timeoutMs: "10000",
  stream: "window",
  onFailure: "block",
  onMedia: "allow",
  logs: "full",
};

/** A model or a webhook decides: it cannot say which part of a text it means, so nothing is masked. */
export function isJudged(type: GuardrailRule["type"]): type is "model" | "webhook" {
  return type === "model" || type === "webhook";
}

/** The draft with another type: what the new type does not have gets its default. */
export function withType(draft: RuleDraft, type: GuardrailRule["type"]): RuleDraft {
  const kinds = type === "pii" || type === "secrets" ? KINDS[type] : draft.kinds;
  return {
    ...draft,
    type,
    kinds,
    action: isJudged(type) && draft.action === "mask" ? "block" : draft.action,
  };
}

export function toRuleDraft(rule: GuardrailRule): RuleDraft {
  const { id, enabled = true, type, on = ["prompt", "response"], action } = rule;
  const common = {
    ...BLANK_RULE,
    id,
    isEnabled: enabled,
    type,
    places: on,
    action,
    onFailure: rule.on_failure ?? "block",
    onMedia: rule.on_media ?? "allow",
    logs: rule.logs ?? "full",
  };
  if (rule.type === "model" || rule.type === "webhook") {
    const { timeout_ms: timeoutMs = 10_000, stream = "window" } = rule;
    const judged = { ...common, timeoutMs: String(timeoutMs), stream };
    if (rule.type === "webhook") return { ...judged, url: rule.url };
    const { model, format = "guard", instructions = "", categories = [], threshold = 0.5 } = rule;
    return {
      ...judged,
      model,
      format,
      instructions,
      categories: categories.join("\n"),
      threshold: String(threshold),
    };
  }
  const local = { ...common, allow: (rule.allow ?? []).join("\n") };
  if (rule.type === "regex") return { ...local, pattern: rule.pattern };
  if (rule.type === "words") return { ...local, words: rule.words.join("\n") };
  return { ...local, kinds: rule.kinds ?? KINDS[rule.type] };
}

export function fromRuleDraft(draft: RuleDraft): GuardrailRule {
  const common = {
    id: draft.id.trim(),
    on: draft.places,
    on_failure: draft.onFailure,
    on_media: draft.onMedia,
    logs: draft.logs,
    enabled: draft.isEnabled,
  };
  if (isJudged(draft.type)) {
    const judged = {
      ...common,
      action: draft.action === "flag" ? ("flag" as const) : ("block" as const),
      timeout_ms: Number(draft.timeoutMs),
      stream: draft.stream,
    };
    if (draft.type === "webhook") return { ...judged, type: "webhook", url: draft.url.trim() };
    const { format } = draft;
    const categories = parseLines(draft.categories);
    return {
      ...judged,
      type: "model",
      model: draft.model.trim(),
      format,
      ...(format === "guard" && draft.instructions.trim() !== "" ? { instructions: draft.instructions } : {}),
      ...(format !== "injection" && categories.length > 0 ? { categories } : {}),
      ...(format === "injection" ? { threshold: Number(draft.threshold) } : {}),
    };
  }
  const local = { ...common, action: draft.action, allow: parseLines(draft.allow) };
  if (draft.type === "regex") return { ...local, type: "regex", pattern: draft.pattern };
  if (draft.type === "words") return { ...local, type: "words", words: parseLines(draft.words) };
  return { ...local, type: draft.type, kinds: draft.kinds };
}

/** The rules with a new or an edited one; what others have changed meanwhile stays. */
export function withSavedRule(
  rules: readonly GuardrailRule[],
  before: GuardrailRule | null,
  edited: GuardrailRule,
): readonly GuardrailRule[] {
  if (before === null) return [...rules, edited];
  const asDrafted = (rule: GuardrailRule) => fromRuleDraft(toRuleDraft(rule));
  const now = rules.find(({ id }) => id === before.id);
  const merged = mergeEdit(
    asDrafted(before),
    edited,
    now === undefined ? undefined : asDrafted(now),
    `guardrail ${before.id}`,
  );
  return rules.map((rule) => (rule === now ? merged : rule));
}
