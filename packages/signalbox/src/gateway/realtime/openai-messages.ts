/**
 * The messages of OpenAI's Realtime API and of the Responses API over WebSockets.
 *
 * Messages with sound are large and frequent, and only their type is read. Members are read as any provider might read them: two members of one
 * name both count, whatever their case.
 */
import { type Fields, isFields } from "../../core/fields.ts";
import { readEachMember, readMembers, readUsage } from "../../engines/relay/index.ts";
import {
  type ClientMessage,
  collectModels,
  parseObject,
  type ProviderMessage,
  type SessionDialect,
} from "./message.ts";

const SOUND = "input_audio_buffer.append";
const START = "response.create";
/** Members with settings; `input` and the content of items are not parsed. */
const SETTINGS: ReadonlySet<string> = new Set([
  "type",
  "event_id",
  "model",
  "models",
  "fallbacks",
  "tools",
  "session",
  "response",
  "max_output_tokens",
]);

type ReadLimit = (own: readonly unknown[], settings: readonly Fields[]) => number | null | undefined;

function readClient(bytes: Buffer, readLimit: ReadLimit): ClientMessage | null {
  const members = readEachMember(bytes, (name) => SETTINGS.has(name.toLowerCase()));
  if (members === null) return null;
  const valuesOf = (wanted: string) =>
    members.filter(({ name }) => name.toLowerCase() === wanted).map(({ value }) => value);
  const types = valuesOf("type");
  const eventId = valuesOf("event_id").find((value) => typeof value === "string") ?? null;
  if (types.length === 1 && types[0] === SOUND) {
    return { startsResponse: false, models: [], mediaBytes: bytes.length, eventId };
  }
  const models = members.flatMap(({ name, value }) => collectModels({ [name]: value }));
  const settings = [...valuesOf("session"), ...valuesOf("response")].filter(isFields);
  const model = [...valuesOf("model"), ...settings.map((fields) => fields["model"])].find(isText);
  const transcriptionModel = settings.map(transcriptionModelOf).find(isText);
  const maxOutputTokens = readLimit(valuesOf("max_output_tokens"), settings);
  return {
    startsResponse: types.includes(START),
    models,
    ...(model === undefined ? {} : { model }),
    ...(transcriptionModel === undefined ? {} : { transcriptionModel }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    mediaBytes: 0,
    eventId,
  };
}

/** `input_audio_transcription` in the first version of the API, `audio.input.transcription` since. */
function transcriptionModelOf(settings: Fields): unknown {
  const audio = settings["audio"];
  const input = isFields(audio) ? audio["input"] : undefined;
  const own = isFields(input) ? input["transcription"] : settings["input_audio_transcription"];
  return isFields(own) ? own["model"] : undefined;
}

/** The limit of a session or response is among its settings. */
const limitOfSettings: ReadLimit = (own, settings) => {
  const limits = [...own, ...settings.flatMap(limitsOf)];
  return limits.length === 0 ? undefined : largestOf(limits);
};

/** The limit of a request of the Responses API is a member of the message. Settings in it are none of this API, and could be read in its place. */
const limitOfRequest: ReadLimit = (own, settings) => {
  if (own.length === 0 || settings.some((fields) => limitsOf(fields).length === 0)) return null;
  return largestOf([...own, ...settings.flatMap(limitsOf)]);
};

function limitsOf(settings: Fields): unknown[] {
  return [settings["max_output_tokens"], settings["max_response_output_tokens"]].filter(
    (value) => value !== undefined,
  );
}

/** Of several, any one may count. Null for `inf`, and for what is no limit. */
function largestOf(limits: readonly unknown[]): number | null {
  const numbers = limits.filter((value) => typeof value === "number" && value > 0) as number[];
  return numbers.length === limits.length ? Math.max(...numbers) : null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

const TYPE: ReadonlySet<string> = new Set(["type"]);
const NOTHING: ProviderMessage = { kept: false };
const TRANSCRIBED = "conversation.item.input_audio_transcription.completed";
const ENDED: ReadonlySet<string> = new Set([
  "response.done",
  "response.completed",
  "response.incomplete",
  "response.failed",
]);

function readProvider(bytes: Buffer): ProviderMessage {
  const type = readMembers(bytes, TYPE).get("type");
  if (typeof type !== "string") return NOTHING;
  if (type === "response.created") return { kept: false, begins: true };
  if (type === "error") return { kept: true, refuses: true };
  if (ENDED.has(type)) {
    const fields = parseObject(bytes);
    const { usage, model } = readUsage(fields);
    const response = fields?.["response"];
    const isFailed = type === "response.failed" || (isFields(response) && response["status"] === "failed");
    return {
      kept: true,
      ends: true,
      ...(isFailed ? { isFailed } : {}),
      ...(usage === null ? {} : { usage }),
      ...(model === null ? {} : { model }),
    };
  }
  if (type === "session.created" || type === "session.updated") {
    const session = parseObject(bytes)?.["session"];
    const model = isFields(session) ? session["model"] : undefined;
    return isText(model) ? { kept: true, model } : { kept: true };
  }
  return type === TRANSCRIBED ? readTranscription(bytes) : NOTHING;
}

function readTranscription(bytes: Buffer): ProviderMessage {
  const fields = parseObject(bytes);
  const { usage } = readUsage(fields);
  if (usage !== null) return { kept: true, transcription: usage };
  return isFields(fields?.["usage"]) ? { kept: true, isBilledByTime: true } : { kept: true };
}

const toError: SessionDialect["toError"] = ({ code, status, message, eventId }) =>
  JSON.stringify({
    type: "error",
    status,
    error: { type: "gateway_error", code: String(code), message, param: null, event_id: eventId },
  });

export const OPENAI_REALTIME: SessionDialect = {
  kind: "realtime",
  readClient: (bytes) => readClient(bytes, limitOfSettings),
  readProvider,
  hasTurns: false,
  hasSound: true,
  toError,
  isKnown: true,
};

export const OPENAI_RESPONSES: SessionDialect = {
  ...OPENAI_REALTIME,
  kind: "responses",
  readClient: (bytes) => readClient(bytes, limitOfRequest),
  hasSound: false,
};
