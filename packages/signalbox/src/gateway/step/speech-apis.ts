/**
 * The APIs of providers of speech whose forms are their own: where a request names its model, and which text it lets speak or which sound it sends. Their
 * prices are the operator's.
 */
import { readMembers, type RequestBody } from "../../engines/relay/index.ts";
import { formValues } from "./body-facts.ts";

interface SpeechApi {
  /** Spoken text, and the member that has it. */
  readonly speaks: RegExp;
  readonly text: string;
  /** Written sound. */
  readonly listens: RegExp;
}

const APIS: Readonly<Record<string, SpeechApi>> = {
  elevenlabs: {
    speaks: /(?:^|\/)text-to-speech\/[^/]+(?:\/stream)?(?:\/with-timestamps)?$/i,
    text: "text",
    listens: /(?:^|\/)speech-to-text$/i,
  },
  deepgram: { speaks: /(?:^|\/)speak$/i, text: "text", listens: /(?:^|\/)listen$/i },
  cartesia: { speaks: /(?:^|\/)tts\/(?:bytes|sse)$/i, text: "transcript", listens: /(?:^|\/)stt$/i },
};

function apiOf(provider: string): SpeechApi | undefined {
  return Object.hasOwn(APIS, provider) ? APIS[provider] : undefined;
}

/** Null for a request that lets no text speak. */
export function spokenMember(provider: string, path: string): string | null {
  const api = apiOf(provider);
  return api?.speaks.test(path) === true ? api.text : null;
}

export function sendsSound(provider: string, path: string): boolean {
  return apiOf(provider)?.listens.test(path) === true;
}

const MODEL_ID: ReadonlySet<string> = new Set(["model_id"]);

/** Deepgram has the model in the query, the others a member `model_id`. Empty for other providers, and for a request that names none. */
export function speechModel(provider: string, query: string, body: RequestBody): string {
  if (apiOf(provider) === undefined) return "";
  const inQuery = new URLSearchParams(query);
  const named = inQuery.get("model") ?? inQuery.get("model_id");
  if (named !== null || body.kind !== "whole") return named ?? "";
  const member = readMembers(body.bytes, MODEL_ID).get("model_id");
  return typeof member === "string" ? member : (formValues(body.bytes, "model_id")[0] ?? "");
}
