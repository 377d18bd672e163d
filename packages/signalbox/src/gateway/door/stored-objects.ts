/**
 * What is kept behind a call of a unified door, and read later: files, batches and responses at one provider, and responses that the gateway keeps itself, also those that are
 * written in the background.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Authenticator } from "../../accounts/index.ts";
import type { OtherNodes } from "../../contracts/other-nodes.ts";
import type { OwnCall, OwnServer } from "../../contracts/own-server.ts";
import type { Clock } from "../../core/clock.ts";
import { sha256 } from "../../core/secret.ts";
import type { HttpResponse } from "../../engines/http-server/index.ts";
import { headersOfCaller } from "../call/as-caller.ts";
import type { Arrival } from "../call/call-start.ts";
import type { CallersAnswers, KeptAnswers } from "../exchange/kept-answers.ts";
import { searchAnswer } from "../guardrails/call-guard.ts";
import { judgedCallOf } from "../call/call-runner.ts";
import { readCallOptions } from "../plan/forwarded-request.ts";
import type { Guardrails } from "../guardrails/guardrails.ts";
import type { Judges } from "../guardrails/judges.ts";
import type { NamedModel } from "../models/model-names.ts";
import type { ForwardedHeaders } from "../plan/forwarded-request.ts";
import type { ModelRequest } from "../plan/model-request.ts";
import type { ProviderDirectory } from "../providers/provider.ts";
import { malformed } from "../step/malformed.ts";
import { requireMethod } from "./arrive.ts";
import { BackgroundResponses } from "./background-responses.ts";
import { readCallerHeaders } from "./caller-headers.ts";
import { DEFAULT_PROVIDER } from "./door-path.ts";
import { answerKept, type KeptRequest } from "./kept-response.ts";
import { type KeptElsewhere, OtherNodesAnswers } from "./other-nodes-answers.ts";
import { sendJson, sendJsonText } from "./send-json.ts";

const UNKNOWN: KeptElsewhere = { kind: "unknown" };

export interface StoredObjectsParts {
  readonly keptAnswers: KeptAnswers;
  readonly guardrails: Guardrails;
  readonly judges: Judges;
  readonly authenticator: Authenticator;
  readonly providers: ProviderDirectory;
  readonly clock: Clock;
  /** Null for a process that is alone. */
  readonly nodes: OtherNodes | null;
  /** For calls in the background. */
  readonly server: OwnServer;
}

/** Serves a call of one provider at a path of its API. */
export type ServePlain = (arrival: Arrival, slug: string, path: string) => void | Promise<void>;

export class StoredObjects {
  readonly #parts: StoredObjectsParts;
  readonly #servePlain: ServePlain;
  readonly #background: BackgroundResponses;
  readonly #others: OtherNodesAnswers;

  constructor(parts: StoredObjectsParts, servePlain: ServePlain) {
    this.#parts = parts;
    this.#servePlain = servePlain;
    this.#background = new BackgroundResponses(parts.clock);
    this.#others = new OtherNodesAnswers(parts.nodes, parts.keptAnswers, (scope, wanted) =>
      this.#answerHere(scope, wanted),
    );
  }

  /** Ends what runs in the background. */
  close(): void {
    this.#background.close();
  }

  /** Files, batches and responses are at one provider: the one of the client's SDK, unless a header names another. */
  async serve(arrival: Arrival, path: string): Promise<void> {
    const { request, gateway, context } = arrival;
    requireMethod(request, "GET", "HEAD", "POST", "DELETE");
    const [kind, id = "", action = ""] = path.split("/");
    const scope =
      kind === "responses" ? this.#scopeOf(arrival, readCallerHeaders(this.#parts, arrival)) : null;
    const query = new URLSearchParams(context.query);
    const kept =
      scope === null || id === ""
        ? UNKNOWN
        : await this.#keptAnywhere(scope, { method: request.method ?? "GET", id, action, query });
    if (kept.kind === "error") throw new SignalboxError(kept.id, kept);
    if (kept.kind === "answer") {
      await this.#sendKept(arrival, JSON.stringify(kept.answer));
      return;
    }
    const named = request.headers["gw-aig-provider"] ?? request.headers["cf-aig-provider"];
    const isAnthropic = request.headers["anthropic-version"] !== undefined || path.startsWith("messages/");
    const usual = kept.kind === "provider" ? kept.slug : isAnthropic ? "anthropic" : DEFAULT_PROVIDER;
    const slug = typeof named === "string" ? named : usual;
    const provider = this.#parts.providers.find(gateway.accountId, slug);
    if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
    const own = provider.apisFor("").further(path);
    if (own === null)
      throw malformed(`${slug} has no API for ${path.split("/", 1)[0] ?? ""} that this door can use`);
    await this.#servePlain(arrival, slug, own);
  }

  async #keptAnywhere(scope: string, wanted: KeptRequest): Promise<KeptElsewhere> {
    const here = this.#answerHere(scope, wanted);
    return here.kind === "unknown" ? this.#others.response(scope, wanted) : here;
  }

  #answerHere(scope: string, wanted: KeptRequest): KeptElsewhere {
    const answers = this.#parts.keptAnswers.of(scope);
    const kept = answers.find(wanted.id);
    if (kept === undefined) {
      const slug = answers.providerOf(wanted.id);
      return slug === undefined ? UNKNOWN : { kind: "provider", slug };
    }
    const cancel = (id: string) => this.#background.cancel(answers, id);
    try {
      return { kind: "answer", answer: answerKept(answers, kept, wanted, cancel) };
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error;
      const { id, message, headers } = error;
      return { kind: "error", id, message, headers };
    }
  }

  /** The rules may have changed since the answer was given. */
  async #sendKept(arrival: Arrival, answer: string): Promise<void> {
    const { request, response, gateway, caller } = arrival;
    const { guardrails } = readCallOptions(request.rawHeaders);
    // What says that it is deleted has no text, and is, whatever the rules say.
    const rules =
      request.method === "DELETE" ? null : this.#parts.guardrails.rulesFor(gateway, caller.token, guardrails);
    await rules?.prepare();
    const judging = { judges: this.#parts.judges, call: judgedCallOf(arrival, null) };
    sendJsonText(
      response,
      rules === null ? answer : await searchAnswer(rules, answer, judging, closeSignal(response)),
    );
  }

  /** The request with what other nodes keep of what it refers to. */
  async gather(arrival: Arrival, request: ModelRequest): Promise<ModelRequest> {
    const { earlier, forwarded } = request;
    const scope = this.#parts.nodes === null ? null : this.#scopeOf(arrival, forwarded);
    if (earlier === null || scope === null) return request;
    const missing = earlier.missing(request.fields());
    if (missing.length === 0) return request;
    return { ...request, earlier: earlier.withFound(await this.#others.items(scope, missing)) };
  }

  /** Answers with the beginning of a response that is written later. `check` throws what is wrong with the request, which is said at once. */
  startInBackground(arrival: Arrival, request: ModelRequest, check: (request: ModelRequest) => void): void {
    const { background: _, ...fields } = request.fields();
    const { earlier } = request;
    if (earlier === null)
      throw malformed("background: only a caller with a token or a key finds its response again");
    if (fields["store"] === false)
      throw malformed("background: the response must be stored, so store must not be false");
    if (request.isStream)
      throw malformed("background: the provider of this model does not stream in the background");
    check({ ...request, fields: () => fields });
    const { server } = this.#parts;
    const initial = this.#background.start(arrival.gateway.accountId, earlier, fields, (body, signal) =>
      server.call({ ...callAgain(arrival), body, signal }),
    );
    sendJson(arrival.response, initial);
  }

  answersOf(arrival: Arrival, forwarded: ForwardedHeaders): CallersAnswers | null {
    const scope = this.#scopeOf(arrival, forwarded);
    return scope === null ? null : this.#parts.keptAnswers.of(scope);
  }

  /** By token or, without one, by the key that the caller sends to the provider. */
  #scopeOf(
    { gateway, caller }: Arrival,
    { credential }: Pick<ForwardedHeaders, "credential">,
  ): string | null {
    const who =
      caller.tokenId ?? (credential.length === 0 ? null : sha256(credential.join(" ")).toString("hex"));
    return who === null ? null : `${gateway.accountId}/${gateway.id}/${who}`;
  }
}

/** Whether the provider of the model has the responses API itself. */
export function hasResponses(named: NamedModel): boolean {
  if (named.kind === "route") return false;
  return named.provider.apisFor(named.model).calls.some(({ dialect }) => dialect === "responses");
}

/** A call of the responses door as the sender of `arrival` would make it. */
function callAgain(arrival: Arrival): Omit<OwnCall, "body"> {
  const { accountId, id } = arrival.gateway;
  return {
    method: "POST",
    target: `/v1/${encodeURIComponent(accountId)}/${encodeURIComponent(id)}/compat/responses`,
    headers: { ...headersOfCaller(arrival), "content-type": "application/json" },
    authorization: null,
  };
}

/** Aborted when the client has left. */
function closeSignal(response: HttpResponse): AbortSignal {
  const left = new AbortController();
  response.once("close", () => left.abort());
  return left.signal;
}
