/**
 * What a request asks for that is billed by the piece: pictures by size and quality, speech by the character, sound by the second, documents by the page,
 * and rankings by the search. Reserved before the call; where the response counts nothing, this is also what the call used.
 */
import { type Fields, isFields } from "../../core/fields.ts";
import { readMembers, type RequestBody, type Usage } from "../../engines/relay/index.ts";
import { formValues } from "../step/body-facts.ts";
import { sendsSound, spokenMember } from "../step/speech-apis.ts";
import type { Step } from "../step/step.ts";
import { furtherPrices } from "./further-prices.ts";
import { packageIdOf } from "./prices-package.ts";
import { pictureTokens } from "./picture-tokens.ts";
import { refersToOtherInput } from "./referred-input.ts";
import { offeredTools, uncountedSearches } from "./requested-tools.ts";

type Pieces = Partial<Usage>;

/** Sound of the lowest quality in use; better sound has more bytes, and is reserved as longer than it is. */
const SOUND_BYTES_PER_SECOND = 2000;
const DOCUMENT_BYTES_PER_PAGE = 20_000;
/** The most pages that an API for documents takes. */
const MAX_PAGES = 1000;
const OCR_PATH = /(?:^|\/)ocr$/i;
const SPEECH_PATH = /(?:^|\/)audio\/speech$/i;
const RERANK_PATH = /(?:^|\/)rerank$/i;
const PREDICT_PATH = /imagen[^/]*:predict$/i;
/** Their paths are none of these. */
const TEXT_TYPES: ReadonlySet<string> = new Set(["chat", "messages", "responses"]);

/** What is counted in pieces; for other requests what tools of the provider may do. */
export function expectedPieces(step: Step): Pieces {
  const { upstream, requestType, path } = step;
  const { body } = upstream;
  const counted = requestedPieces(step);
  if (counted !== null) return counted;
  const length =
    body.kind === "whole" ? body.bytes.length : body.kind === "streamed" ? (body.length ?? 0) : 0;
  if (requestType === "audio" || sendsSound(step.provider.slug, path))
    return { seconds: Math.ceil(length / SOUND_BYTES_PER_SECOND) };
  if (!TEXT_TYPES.has(requestType) && OCR_PATH.test(path)) {
    const isElsewhere = refersToOtherInput(body) || (body.kind === "whole" && body.bytes.includes("_url"));
    const pages = isElsewhere ? MAX_PAGES : Math.ceil(length / DOCUMENT_BYTES_PER_PAGE);
    return { pages, isAnnotated: wantsAnnotations(step) };
  }
  const tools = body.kind === "whole" ? offeredTools(body.bytes) : {};
  return { ...tools, searches: Math.max(tools.searches ?? 0, uncountedSearches(step)) };
}

/** Mistral's annotations: the answer counts pages, and not what was done with them. */
export function wantsAnnotations({ upstream: { body } }: Pick<Step, "upstream">): boolean {
  const bytes = body.kind === "whole" ? body.bytes : body.kind === "streamed" ? body.start : null;
  return bytes?.includes('_annotation_format"') === true;
}

/** Pieces that the request alone determines; null for other requests, and for one that was only partly read. */
export function requestedPieces(step: Step): Pieces | null {
  const pieces = piecesOf(step);
  if (pieces === null) return null;
  // A model that is billed by the piece has no tokens.
  const rates = furtherPrices(packageIdOf(step.provider.slug) ?? "", step.model);
  const isByPiece = rates !== null && rates["input_mtok"] === undefined;
  return isByPiece ? { ...pieces, tokensIn: 0, tokensOut: 0 } : pieces;
}

function piecesOf(step: Step): Pieces | null {
  const { provider, requestType, path, upstream } = step;
  if (upstream.body.kind !== "whole" || TEXT_TYPES.has(requestType)) return null;
  if (requestType === "images") return pictures(step);
  const spoken = SPEECH_PATH.test(path) ? "input" : spokenMember(provider.slug, path);
  if (spoken !== null) return speech(upstream.body, spoken);
  if (RERANK_PATH.test(path)) return ranking(upstream.body);
  return PREDICT_PATH.test(path) ? predicted(upstream.body) : null;
}

const PICTURE_MEMBERS: ReadonlySet<string> = new Set(["size", "quality"]);
function pictures({ upstream: { body }, choices }: Step): Pieces {
  const { size = "", quality = "" } = readTexts(body, PICTURE_MEMBERS);
  const each = pictureTokens(quality, size);
  const imageForm = `${quality || "standard"} ${size || "1024x1024"}`;
  return { images: choices, imageForm, tokensOut: each * choices };
}

/** Tokens of sound that a model writes for a character: 1,250 a minute, at 15 characters a second. */
const SOUND_TOKENS_PER_CHARACTER = 1.4;

function speech(body: RequestBody, member: string): Pieces | null {
  const text = readTexts(body, new Set([member]))[member];
  if (text === undefined) return null;
  // Providers count characters, not units of UTF-16.
  const characters = Array.from(text).length;
  return { characters, tokensOut: Math.ceil(characters * SOUND_TOKENS_PER_CHARACTER) };
}

/** A search is a query with up to a hundred documents. */
const DOCUMENTS_PER_SEARCH = 100;

function ranking(body: RequestBody): Pieces | null {
  const documents = parsed(body)?.["documents"];
  if (!Array.isArray(documents)) return null;
  return { rankings: Math.max(1, Math.ceil(documents.length / DOCUMENTS_PER_SEARCH)), tokensOut: 0 };
}

/** Imagen makes four pictures unless it is told otherwise. */
const DEFAULT_SAMPLES = 4;

function predicted(body: RequestBody): Pieces | null {
  const fields = parsed(body);
  if (fields === null) return null;
  const parameters = fields["parameters"];
  const count = isFields(parameters) ? parameters["sampleCount"] : undefined;
  const images = typeof count === "number" && count > 0 ? count : DEFAULT_SAMPLES;
  return { images, imageForm: "standard", tokensOut: 0 };
}

/** What two values of one field of a form make: it is not known which of them counts. */
const AMBIGUOUS = "?";

/** Members with a text as value, of a JSON object or a form. */
function readTexts(body: RequestBody, names: ReadonlySet<string>): Record<string, string | undefined> {
  if (body.kind !== "whole") return {};
  const { bytes } = body;
  const found = readMembers(bytes, names);
  return Object.fromEntries(
    [...names].map((name) => {
      const [first, ...others] = new Set(formValues(bytes, name));
      const value = found.get(name) ?? (others.length === 0 ? first : AMBIGUOUS);
      return [name, typeof value === "string" ? value : undefined];
    }),
  );
}

function parsed(body: RequestBody): Fields | null {
  if (body.kind !== "whole") return null;
  try {
    const value: unknown = JSON.parse(body.bytes.toString("utf8"));
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}
