/**
 * Responses that are written after their request was answered (`background`), for models whose provider has no such API: the call runs inside this process, like
 * one of the same caller over a connection, with its limits, its row and its cost. Its client reads the result with `GET /v1/responses/{id}`.
 *
 * The state is that of the kept answers: in the memory of this process, for an hour, where other nodes ask for it. A process that stops ends what runs.
 */
import type { Clock } from "../../core/clock.ts";
import { type Fields, isFields } from "../../core/fields.ts";
import { overloaded } from "../../core/overload.ts";
import { SharedPlaces } from "../../core/shared-pool.ts";
import { ulid } from "../../core/ulid.ts";
import type { CallersAnswers } from "../exchange/kept-answers.ts";

/** Runs the call of a request with this body; the signal ends it. */
type RunCall = (body: Buffer, signal: AbortSignal) => Promise<Response>;

/** Of all accounts. Each is a call that may take minutes. */
const MAX_RUNNING = 1000;

export class BackgroundResponses {
  readonly #clock: Clock;
  /** Those that run, by id. Ids are random, and each caller finds only its own answers. */
  readonly #running = new Map<string, AbortController>();
  readonly #places = new SharedPlaces(MAX_RUNNING);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts the call, and returns the response as it is now. */
  start(accountId: string, answers: CallersAnswers, request: Fields, run: RunCall): Fields {
    const share = this.#places.shareOf(accountId);
    if (!share.take()) throw overloaded();
    const now = this.#clock.now();
    const id = `resp_${ulid(now).toLowerCase()}`;
    const initial = initialResponse(id, now, request);
    const abort = new AbortController();
    this.#running.set(id, abort);
    answers.keepState(id, initial);
    void this.#finish(answers, request, initial, run, abort.signal).finally(() => {
      this.#running.delete(id);
      share.release();
    });
    return initial;
  }

  /** False if the response does not run. */
  cancel(answers: CallersAnswers, id: string): boolean {
    const abort = this.#running.get(id);
    const answer = answers.find(id);
    if (abort === undefined || answer === undefined) return false;
    this.#running.delete(id);
    answers.keepState(id, { ...answer, status: "cancelled" });
    abort.abort();
    return true;
  }

  /** Ends all that run. */
  close(): void {
    for (const abort of this.#running.values()) abort.abort();
  }

  async #finish(
    answers: CallersAnswers,
    request: Fields,
    initial: Fields,
    run: RunCall,
    signal: AbortSignal,
  ): Promise<void> {
    const { background: _, ...rest } = request;
    let answer: Fields;
    try {
      const response = await run(Buffer.from(JSON.stringify({ ...rest, stream: false })), signal);
      const value: unknown = await response.json();
      answer =
        response.ok && isFields(value) && Array.isArray(value["output"])
          ? { ...value, id: initial["id"], background: true, store: true }
          : failed(initial, value);
    } catch (error) {
      answer = failed(initial, error instanceof Error ? error : null);
    }
    if (signal.aborted) return;
    if (answer["status"] === "failed") answers.keepState(String(initial["id"]), answer);
    else answers.keep(answers.complete(rest), answer);
  }
}

function initialResponse(id: string, now: number, request: Fields): Fields {
  return {
    id,
    object: "response",
    created_at: Math.floor(now / 1000),
    status: "in_progress",
    background: true,
    error: null,
    incomplete_details: null,
    instructions: request["instructions"] ?? null,
    max_output_tokens: request["max_output_tokens"] ?? null,
    metadata: request["metadata"] ?? {},
    model: request["model"],
    output: [],
    parallel_tool_calls: request["parallel_tool_calls"] ?? true,
    previous_response_id: request["previous_response_id"] ?? null,
    store: true,
    temperature: request["temperature"] ?? 1,
    tool_choice: request["tool_choice"] ?? "auto",
    tools: request["tools"] ?? [],
    top_p: request["top_p"] ?? 1,
    usage: null,
  };
}

/** `value`: the body of an error, in OpenAI's or the gateway's form. */
function failed(initial: Fields, value: unknown): Fields {
  const error = isFields(value) && isFields(value["error"]) ? value["error"] : value;
  const { message, code, internalCode }: Fields = isFields(error) ? error : {};
  const text = error instanceof Error ? error.message : message;
  return {
    ...initial,
    status: "failed",
    error: {
      code:
        typeof code === "string"
          ? code
          : `${typeof internalCode === "number" ? internalCode : "server_error"}`,
      message: typeof text === "string" ? text : "The response could not be written",
    },
  };
}
