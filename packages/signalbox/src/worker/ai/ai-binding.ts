/** `env.AI`: models through the gateway of this server. Each call is logged, priced and limited there, with the calling object in its metadata. */
import type { OwnServer } from "../../contracts/own-server.ts";
import { readStart } from "../../core/response-start.ts";
import { AiError, toAiError } from "./ai-error.ts";
import { AiGateway, lowerCase, withOriginalHeaders } from "./ai-gateway.ts";
import { type GatewayOptions, toGatewayHeaders } from "./gateway-options.ts";
import { toAnswer, toNativeStream } from "./model-answer.ts";
import { ModelNames } from "./model-names.ts";
import { toModelRequest } from "./model-request.ts";

export interface AiSettings {
  readonly account: string;
  readonly gateway: string;
  readonly models: Readonly<Record<string, string>>;
}

export interface AiRunOptions {
  readonly gateway?: GatewayOptions;
  readonly returnRawResponse?: boolean;
  readonly extraHeaders?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

const RESUMABLE = { "gw-aig-resumable": "true" };
/** The only address of the originals' service that libraries fetch: the rest of a stream. */
const RESUME = /^\/ai-gateway\/gateways\/([^/]+)\/run\/([^/]+)\/resume$/;
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** Names of models of the originals; answers to others are not translated. */
const ORIGINAL = /^@(cf|hf)\//;

export class AiBinding {
  readonly #server: OwnServer;
  readonly #settings: AiSettings;
  readonly #names: ModelNames;
  readonly #agent: () => string | null;
  /** Id of the last call in the gateway's log; null before the first. */
  aiGatewayLogId: string | null = null;

  /** `agent` returns the object whose code runs, as `agent/name`; null outside of objects. */
  constructor(server: OwnServer, settings: AiSettings, agent: () => string | null) {
    this.#server = server;
    this.#settings = settings;
    this.#names = new ModelNames(settings.models);
    this.#agent = agent;
  }

  /** Runs a model. A stream of events if `inputs.stream` is true, the response itself with `returnRawResponse`, otherwise the answer. */
  async run(name: string, inputs: unknown, options: AiRunOptions = {}): Promise<unknown> {
    const target = this.#names.find(name);
    const request = toModelRequest(target, inputs);
    const gateway = options.gateway?.id ?? this.#settings.gateway;
    const response = withOriginalHeaders(
      await this.#server.call({
        method: "POST",
        target: `/v1/${this.#settings.account}/${gateway}/${target.provider}/${request.path}`,
        headers: {
          "content-type": "application/json",
          // Only a raw response shows the id of the run.
          ...(request.isStream && options.returnRawResponse === true ? RESUMABLE : {}),
          ...lowerCase(options.extraHeaders ?? {}),
          ...toGatewayHeaders(options.gateway ?? {}, this.#agent()),
        },
        body: Buffer.from(JSON.stringify(request.body)),
        signal: options.signal,
      }),
    );
    this.aiGatewayLogId = response.headers.get("gw-aig-log-id");
    if (options.returnRawResponse === true) return response;
    if (!response.ok) throw await toAiError(response);
    const isOriginal = ORIGINAL.test(name);
    if (request.isStream && response.body !== null)
      return isOriginal && request.task === "chat"
        ? toNativeStream(response.body as ReadableStream<Uint8Array<ArrayBuffer>>)
        : response.body;
    const { bytes, isWhole } = await readStart(response, MAX_ANSWER_BYTES);
    if (!isWhole) throw new AiError("the answer of the model is too large", 502, this.aiGatewayLogId);
    const answer: unknown = JSON.parse(bytes.toString("utf8"));
    return isOriginal || request.task === "embeddings" ? toAnswer(request.task, answer) : answer;
  }

  /** Reads a stream again whose connection has closed, as libraries do with the id of its run. */
  async fetch(
    input: string | URL | Request,
    init: { readonly signal?: AbortSignal } = {},
  ): Promise<Response> {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    const [, gateway, run] = RESUME.exec(pathname) ?? [];
    if (gateway === undefined || run === undefined) {
      throw new Error(`AI.fetch is not available on Signalbox for ${pathname}`);
    }
    const target = `/v1/${this.#settings.account}/${gateway}/run/${run}/resume${search}`;
    return withOriginalHeaders(await this.#server.call({ method: "GET", target, signal: init.signal }));
  }

  gateway(id: string): AiGateway {
    return new AiGateway(this.#server, { account: this.#settings.account, gateway: id }, this.#agent);
  }

  /** The models of the configuration. */
  async models(): Promise<object[]> {
    return this.#names.configured.map((name) => ({
      id: name,
      name,
      description: `${this.#settings.models[name] ?? ""} through the gateway ${this.#settings.gateway}`,
      source: 1,
      task: { id: "text-generation", name: "Text Generation", description: "" },
      tags: [],
      properties: [],
    }));
  }

  toMarkdown(): never {
    throw new Error(
      "AI.toMarkdown is not available on Signalbox: it needs a service that converts documents",
    );
  }

  autorag(): never {
    throw new Error("AI.autorag is not available on Signalbox: it needs a search service");
  }
}
