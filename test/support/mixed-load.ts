/** Clients of every area of a server that is killed repeatedly, and the responses they received. */
import { pick, type Random } from "./ledger/random.ts";
import { type Answer, createToken, sendRequest, type Target } from "./send-request.ts";
import { sendGeneric } from "./webhook-sender.ts";

export const INSTANCES = ["a", "b", "c", "d", "e", "f", "g", "h"];
const TAGGED = ["r0", "r1", "r2", "r3"];

/** A resource exists, is being deleted (the result is unknown), or is deleted. */
type Fate = "alive" | "deleting" | "deleted";

/** Everything that was acknowledged to clients; requests without a response may have taken effect or not. */
export class MixedModel {
  /** By resource: the version acknowledged last. One client at a time writes to a resource. */
  readonly tags = new Map<string, number>();
  readonly tokens = new Map<string, { readonly secret: string; fate: Fate }>();
  readonly gateways = new Map<string, Fate>();
  /** By instance. */
  readonly handled = new Map<string, Set<string>>();
  readonly noted = new Map<string, Set<string>>();
  readonly requested = new Map<string, Set<string>>();
  readonly unexpected: string[] = [];
  /** Deliveries that were answered 202. */
  stored = 0;
  acknowledged = 0;
  #count = 0;

  nextId(): string {
    this.#count += 1;
    return `n${this.#count}`;
  }

  get count(): number {
    return this.#count;
  }
}

/** Runs until the server does not answer. */
export async function loadEverything(target: Target, model: MixedModel, random: Random): Promise<void> {
  let isOver = false;
  /** The response if the request was acknowledged. A broken connection ends the load: the server was killed. */
  const acknowledged = async (request: Promise<Answer>): Promise<Answer | null> => {
    const answer = await request.catch(() => null);
    if (answer === null) {
      isOver = true;
      return null;
    }
    if (![200, 202, 503].includes(answer.status)) model.unexpected.push(`${answer.status} ${answer.text}`);
    if (answer.status === 202) model.stored += 1;
    if (answer.status !== 200 && answer.status !== 202) return null;
    model.acknowledged += 1;
    return answer;
  };
  const attempt = (method: string, path: string, body?: unknown) =>
    acknowledged(sendRequest(target, method, path, body));

  const deliver = async () => {
    const instance = pick(random, INSTANCES);
    const body = { id: model.nextId(), type: "load", slowMs: random() < 0.1 ? 400 : 0 };
    if ((await acknowledged(sendGeneric(target.url, `mixed/${instance}`, body))) !== null)
      add(model.handled, instance, body.id);
  };
  const call = (method: "note" | "later", acknowledgedIds: Map<string, Set<string>>) => async () => {
    const instance = pick(random, INSTANCES);
    const id = model.nextId();
    if ((await attempt("POST", `/agents/mixed-agent/${instance}/rpc/${method}`, [id])) !== null)
      add(acknowledgedIds, instance, id);
  };
  const addToken = async () => {
    const answer = await acknowledged(createToken(target));
    if (answer === null) return;
    const { id, token } = answer.body.result as { id: string; token: string };
    model.tokens.set(id, { secret: token, fate: "alive" });
  };
  const revokeToken = async () => {
    const [id, token] = [...model.tokens].find(([, { fate }]) => fate === "alive") ?? [];
    if (id === undefined || token === undefined) return addToken();
    token.fate = "deleting";
    if ((await attempt("DELETE", `/accounts/default/tokens/${id}`)) !== null) token.fate = "deleted";
  };
  const createGateway = async () => {
    const id = `g-${model.nextId()}`;
    if ((await attempt("POST", "/accounts/default/ai-gateway/gateways", { id })) !== null)
      model.gateways.set(id, "alive");
  };
  const deleteGateway = async () => {
    const [id] = [...model.gateways].find(([, fate]) => fate === "alive") ?? [];
    if (id === undefined) return createGateway();
    model.gateways.set(id, "deleting");
    if ((await attempt("DELETE", `/accounts/default/ai-gateway/gateways/${id}`)) !== null)
      model.gateways.set(id, "deleted");
  };

  const client = async (works: readonly (() => Promise<void>)[]) => {
    while (!isOver) await pick(random, works)();
  };
  const tagClient = async (id: string) => {
    for (let version = (model.tags.get(id) ?? 0) + 1; !isOver; version++) {
      const body = { resource_type: "worker", resource_id: id, tags: { v: String(version) } };
      if ((await attempt("PUT", "/accounts/default/tags", body)) !== null) model.tags.set(id, version);
    }
  };
  await Promise.all([
    ...Array.from({ length: 6 }, () => client([deliver])),
    ...Array.from({ length: 2 }, () => client([call("note", model.noted), call("later", model.requested)])),
    client([addToken, revokeToken]),
    client([createGateway, deleteGateway]),
    ...TAGGED.map(tagClient),
  ]);
}

function add(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key) ?? new Set();
  set.add(value);
  sets.set(key, set);
}
