/**
 * The messages of Gemini's Live API. They are JSON in text or binary frames, and their one member says what they are. The first message of the
 * client, `setup`, names the model; it can do so once.
 */
import { isFields } from "../../core/fields.ts";
import { readEachMember, readUsage } from "../../engines/relay/index.ts";
import {
  type ClientMessage,
  collectModels,
  parseObject,
  type ProviderMessage,
  type SessionDialect,
} from "./message.ts";

/** `models/x`, `tunedModels/x`, or the path of a model of Vertex AI. */
const RESOURCE = /^(?:.*\/)?(?:models|tunedModels|endpoints)\/([^/]+)$/;
/** The service reads names in both spellings (`realtimeInput`, `realtime_input`). */
const plain = (name: string) => name.replaceAll("_", "").toLowerCase();
/** Content makes the model work; `setup` does not. */
const STARTS: ReadonlySet<string> = new Set(["clientcontent", "realtimeinput", "toolresponse"]);

function readClient(bytes: Buffer): ClientMessage | null {
  const names = new Set<string>();
  const members = readEachMember(bytes, (name) => {
    names.add(plain(name));
    return plain(name) === "setup" || plain(name) === "model";
  });
  if (members === null) return null;
  const models = members
    .flatMap(({ name, value }) => collectModels({ [name]: value }))
    .map((name) => RESOURCE.exec(name)?.[1] ?? name);
  const [model] = models;
  const limits = members
    .filter(({ name }) => plain(name) === "setup")
    .map(({ value }) => outputLimitOf(value));
  // Of several settings, any one may count.
  const [limit] = limits.length === 1 ? limits : [];
  return {
    startsResponse: [...names].some((name) => STARTS.has(name)),
    models,
    ...(model === undefined ? {} : { model }),
    ...(typeof limit === "number" ? { maxOutputTokens: limit } : {}),
    mediaBytes: names.has("realtimeinput") ? bytes.length : 0,
    eventId: null,
  };
}

function outputLimitOf(setup: unknown): unknown {
  const settings = valueOf(setup, "generationConfig", "generation_config");
  return valueOf(settings, "maxOutputTokens", "max_output_tokens");
}

/** The member in one of two spellings; undefined if it stands in both. */
function valueOf(fields: unknown, name: string, otherName: string): unknown {
  if (!isFields(fields) || (name in fields && otherName in fields)) return undefined;
  return fields[name] ?? fields[otherName];
}

const NOTHING: ProviderMessage = { kept: false };
/** Only messages with one of these words are parsed; most are sound. */
const WORDS = [
  "usageMetadata",
  "turnComplete",
  "setupComplete",
  "goAway",
  "toolCall",
  "ranscription",
  '"text"',
];

function readProvider(bytes: Buffer): ProviderMessage {
  if (!WORDS.some((word) => bytes.includes(word))) return NOTHING;
  const fields = parseObject(bytes);
  if (fields === null) return NOTHING;
  const { usage } = readUsage(fields);
  const content = fields["serverContent"];
  const isComplete = isFields(content) && content["turnComplete"] === true;
  return {
    kept: !bytes.includes('"inlineData"'),
    ...(usage === null ? {} : { usage }),
    ...(isComplete ? { ends: true } : {}),
  };
}

export const GEMINI_LIVE: SessionDialect = {
  kind: "realtime",
  readClient,
  readProvider,
  hasTurns: true,
  hasSound: true,
  toError: null,
  isKnown: true,
};
