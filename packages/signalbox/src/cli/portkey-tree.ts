/**
 * The targets of a configuration of Portkey, read in their order: groups may contain groups. Throws an error with the reason for what cannot be
 * expressed; a target of which it cannot be told what it calls is left out, with a note.
 */
import { type Fields, isFields } from "../core/fields.ts";
import { toCondition } from "./portkey-condition.ts";
import {
  type Findings,
  inherit,
  type Inherited,
  membersOf,
  type Model,
  NOTHING,
  toModel,
} from "./portkey-target.ts";

export type Node =
  | { readonly type: "model"; readonly model: Model }
  | { readonly type: "fallback"; readonly nodes: readonly Node[] }
  | { readonly type: "balance"; readonly shares: readonly Share[] }
  | { readonly type: "conditional"; readonly cases: readonly Case[]; readonly otherwise: Node | null };

interface Share {
  readonly weight: number;
  readonly node: Node;
}

interface Case {
  readonly condition: Fields;
  readonly node: Node;
}

/** Deeper than anybody writes, and far from the end of the stack. */
const MAX_DEPTH = 16;

interface Place {
  readonly where: string;
  readonly depth: number;
  readonly outer: Inherited;
}

/** Null if nothing is left. */
export function readTree(config: Fields, name: string, findings: Findings): Node | null {
  return readTarget(config, { where: name, depth: 0, outer: NOTHING }, findings);
}

/** Whether a configuration names something to call. */
export function hasTargets(config: Fields): boolean {
  return (
    Array.isArray(config["targets"]) ||
    ["provider", "virtual_key"].some((name) => typeof config[name] === "string") ||
    (isFields(config["override_params"]) && typeof config["override_params"]["model"] === "string")
  );
}

function readTarget(given: Fields, { where, depth, outer }: Place, findings: Findings): Node | null {
  if (depth > MAX_DEPTH) throw new Error(`targets are nested more than ${MAX_DEPTH} deep`);
  const inherited = inherit(given, outer, where, findings);
  if (!Array.isArray(given["targets"])) {
    const model = toModel(given, inherited, where, findings);
    return model === null ? null : { type: "model", model };
  }
  const targets = given["targets"].map(membersOf);
  const nodes = () =>
    targets.map((target, i) =>
      readTarget(target, { where: `${where}.targets[${i}]`, depth: depth + 1, outer: inherited }, findings),
    );
  const strategy = membersOf(given["strategy"]);
  const mode = strategy["mode"] ?? "single";
  switch (mode) {
    case "single":
      if (targets.length > 1)
        findings.notes.add(`${where}: only the first of ${targets.length} targets is used`);
      return nodes()[0] ?? null;
    case "fallback":
      noteStatuses(strategy, where, findings);
      return toFallback(nodes());
    case "loadbalance":
      return toBalance(targets, nodes(), where, findings);
    case "conditional":
      return toConditional(strategy, targets, nodes(), where, findings);
    default:
      throw new Error(`the mode ${typeof mode === "string" ? mode : JSON.stringify(mode)} is not known`);
  }
}

function noteStatuses(strategy: Fields, where: string, { notes }: Findings): void {
  const codes = strategy["on_status_codes"];
  if (Array.isArray(codes))
    notes.add(
      `${where}: strategy.on_status_codes: callers send the header gw-aig-fallback-on: ${codes.join(",")}; without it, every failure goes to the next target`,
    );
}

function toFallback(nodes: readonly (Node | null)[]): Node | null {
  const left = nodes.filter((node) => node !== null);
  return left.length === 0 ? null : { type: "fallback", nodes: left };
}

function toBalance(
  targets: readonly Fields[],
  nodes: readonly (Node | null)[],
  where: string,
  { notes }: Findings,
): Node | null {
  const shares = targets.flatMap(({ weight = 1 }, i): Share[] => {
    const node = nodes[i] ?? null;
    return node === null || typeof weight !== "number" || !(weight > 0) ? [] : [{ weight, node }];
  });
  if (new Set(shares.map(({ node }) => JSON.stringify(node))).size < shares.length)
    notes.add(
      `${where}: targets of the same model differ in their keys only: give the keys weights with signalbox provider-keys create --weight`,
    );
  return shares.length === 0 ? null : { type: "balance", shares };
}

function toConditional(
  strategy: Fields,
  targets: readonly Fields[],
  nodes: readonly (Node | null)[],
  where: string,
  { notes }: Findings,
): Node {
  const nodeOf = (name: unknown): Node => {
    const i = targets.findIndex((target) => target["name"] === name);
    if (i === -1) throw new Error(`no target has the name ${String(name)}`);
    const node = nodes[i] ?? null;
    if (node === null) throw new Error(`the target ${String(name)}, which a condition needs, was left out`);
    return node;
  };
  const conditions = Array.isArray(strategy["conditions"]) ? strategy["conditions"].map(membersOf) : [];
  const cases = conditions.map(({ query, then }): Case => {
    const { condition, readsModel } = toCondition(query);
    if (readsModel)
      notes.add(
        `${where}: conditions on params.model: callers name the route as their model, and send the other name in the metadata as model`,
      );
    return { condition, node: nodeOf(then) };
  });
  if (cases.length === 0) throw new Error("the mode conditional has no conditions");
  return {
    type: "conditional",
    cases,
    otherwise: strategy["default"] == null ? null : nodeOf(strategy["default"]),
  };
}
