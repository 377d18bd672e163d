/** Clients of every area of a server that is killed repeatedly, and the responses they received. */
import { createHmac } from "node:crypto";
import { pick, type Random } from "./ledger/random.ts";

export const WEBHOOK_SECRET = "secret-of-the-mixed-load";
export const INSTANCES = ["a", "b", "c", "d", "e", "f", "g", "h"];
const TAGGED = ["r0", "r1", "r2", "r3"];

export interface Answer {
  /** Null if the connection broke: the result of the request is unknown. */
  readonly status: number | null;
  readonly text: string;
}

export interface Target {
  readonly url: string;
  readonly token: string;
}

export async function send(
  { url, token }: Target,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  try {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  } catch {
    return { status: null, text: "" };
  }
}

export const resultOf = <T>({ text }: Answer) => (JSON.parse(text) as { result: T }).result;

/** The result of a request: acknowledged, or unknown. */
type Fate = "alive" | "leaving" | "gone";

/** Everything that was acknowledged to clients; requests without a response may have taken effect or not. */
export class MixedModel {
  /** By resource: the version acknowledged last. One client at a time writes to a resource. */
  readonly tags = new Map<string, number>();
  readonly tokens = new Map<string, { readonly secret: string; fate: Fate }>();
  readonly gateways = new Map<string, Fate>();
  /** By instance. */
  readonly handled = new Map<string, Set<string>>();
  readonly noted = new Map<string, Set<string>>();
  readonly asked = new Map<string, Set<string>>();
  readonly unexpected: string[] = [];
  /** Deliveries that were answered 202. */
  stored = 0;
  promises = 0;
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
  const ask = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
    const answer = await send(target, method, path, body, headers);
    if (answer.status === null) isOver = true;
    else if (![200, 202, 503].includes(answer.status))
      model.unexpected.push(`${method} ${path}: ${answer.status} ${answer.text}`);
    const isPromised = answer.status === 200 || answer.status === 202;
    if (isPromised) model.promises += 1;
    if (answer.status === 202) model.stored += 1;
    return isPromised ? answer : null;
  };

  const deliver = async () => {
    const instance = pick(random, INSTANCES);
    const body = { id: model.nextId(), type: "load", slowMs: random() < 0.1 ? 400 : 0 };
    const signature = createHmac("sha256", WEBHOOK_SECRET).update(JSON.stringify(body)).digest("hex");
    const headers = { "x-signature": `sha256=${signature}` };
    if ((await ask("POST", `/webhooks/mixed/${instance}`, body, headers)) !== null)
      add(model.handled, instance, body.id);
  };
  const call = (method: "note" | "later", promised: Map<string, Set<string>>) => async () => {
    const instance = pick(random, INSTANCES);
    const id = model.nextId();
    if ((await ask("POST", `/agents/mixed-agent/${instance}/rpc/${method}`, [id])) !== null)
      add(promised, instance, id);
  };
  const createToken = async () => {
    const answer = await ask("POST", "/accounts/default/tokens", { name: "t", permissions: ["tags.read"] });
    if (answer === null) return;
    const { id, token } = resultOf<{ id: string; token: string }>(answer);
    model.tokens.set(id, { secret: token, fate: "alive" });
  };
  const revokeToken = async () => {
    const [id, token] = [...model.tokens].find(([, { fate }]) => fate === "alive") ?? [];
    if (id === undefined || token === undefined) return createToken();
    token.fate = "leaving";
    if ((await ask("DELETE", `/accounts/default/tokens/${id}`)) !== null) token.fate = "gone";
  };
  const createGateway = async () => {
    const id = `g-${model.nextId()}`;
    if ((await ask("POST", "/accounts/default/ai-gateway/gateways", { id })) !== null)
      model.gateways.set(id, "alive");
  };
  const deleteGateway = async () => {
    const [id] = [...model.gateways].find(([, fate]) => fate === "alive") ?? [];
    if (id === undefined) return createGateway();
    model.gateways.set(id, "leaving");
    if ((await ask("DELETE", `/accounts/default/ai-gateway/gateways/${id}`)) !== null)
      model.gateways.set(id, "gone");
  };

  const client = async (works: readonly (() => Promise<void>)[]) => {
    while (!isOver) await pick(random, works)();
  };
  const tagClient = async (id: string) => {
    for (let version = (model.tags.get(id) ?? 0) + 1; !isOver; version++) {
      const body = { resource_type: "worker", resource_id: id, tags: { v: String(version) } };
      if ((await ask("PUT", "/accounts/default/tags", body)) !== null) model.tags.set(id, version);
    }
  };
  await Promise.all([
    ...Array.from({ length: 6 }, () => client([deliver])),
    ...Array.from({ length: 2 }, () => client([call("note", model.noted), call("later", model.asked)])),
    client([createToken, revokeToken]),
    client([createGateway, deleteGateway]),
    ...TAGGED.map(tagClient),
  ]);
}

function add(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key) ?? new Set();
  set.add(value);
  sets.set(key, set);
}
