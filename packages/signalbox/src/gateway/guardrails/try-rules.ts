/** What rules do with a text, without a call. */
import { type GuardrailRule, isJudged } from "../../accounts/index.ts";
import { invalidRequest } from "../../core/invalid-request.ts";
import { type Finding, Findings, GuardrailBlock } from "./findings.ts";
import { searchText } from "./request-body.ts";
import { type GuardrailPlace, RuleSet } from "./rule-set.ts";
import { inOnePiece } from "./slices.ts";

export interface Trial {
  readonly action: Finding["action"] | null;
  /** With masks; null if it is blocked. */
  readonly text: string | null;
  readonly findings: readonly Pick<Finding, "rule" | "action" | "kind" | "count">[];
}

export async function tryRules(
  rules: readonly GuardrailRule[],
  text: string,
  place: GuardrailPlace,
  /** Resolves when the text may be searched. */
  turn: () => Promise<void> = () => Promise.resolve(),
): Promise<Trial> {
  const set = triedSet(rules);
  await set.prepare();
  await turn();
  const own = set.at(place);
  const findings = new Findings();
  let shown: string | null = text;
  try {
    if (own !== null) {
      if (place === "prompt") findings.reserve(text);
      shown = inOnePiece(searchText(own, findings, text, false, place)) ?? text;
    }
  } catch (error) {
    if (!(error instanceof GuardrailBlock)) throw error;
    shown = null;
  }
  return {
    action: findings.action,
    text: shown,
    findings: findings.all.map(({ rule, action, kind, count }) => ({ rule, action, kind, count })),
  };
}

/** The rules that are enabled. Throws if one asks somebody else: a trial costs nothing and sends nothing. */
export function triedSet(rules: readonly GuardrailRule[]): RuleSet {
  if (rules.some((rule) => isJudged(rule)))
    throw invalidRequest("rules: those that ask a model or a webhook cannot be tried here");
  return new RuleSet(rules.filter(({ enabled }) => enabled).map((rule) => ({ owner: "gateway", rule })));
}
