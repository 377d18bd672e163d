/**
 * What a request asks for that is billed by the piece: pictures by size and quality, speech by the character, sound by the second, documents by the page,
 * and rankings by the search. Reserved before the call; where the response counts nothing, this is also what the call used.
 */
import { type Fields, isFields } from "../../core/fields.ts";
import { readMembers, type RequestBody, type Usage } from "../../engines/relay/index.ts";
import { formValues } from "../step/body-facts.ts";
import type { Step } from "../step/step.ts";
import { furtherPrices } from "./further-prices.ts";
import { packageIdOf } from "./prices-package.ts";
import { expectedSearches, refersToOtherInput, SEARCH } from "./referred-input.ts";

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

/** What is counted in pieces; for other requests the searches that the provider may make, null for none. `text`: of `searchedText`. */
export function expectedPieces(step: Step, text: string | null): Pieces | null {
  const { upstream, requestType, path } = step;
  const { body } = upstream;
  const counted = requestedPieces(step);
  if (counted !== null) return counted;
  const length =
    body.kind === "whole" ? body.bytes.length : body.kind === "streamed" ? (body.length ?? 0) : 0;
  if (requestType === "audio") return { seconds: Math.ceil(length / SOUND_BYTES_PER_SECOND) };
  if (!TEXT_TYPES.has(requestType) && OCR_PATH.test(path)) {
    const isElsewhere = refersToOtherInput(body) || (body.kind === "whole" && body.bytes.includes("_url"));
    const pages = isElsewhere ? MAX_PAGES : Math.ceil(length / DOCUMENT_BYTES_PER_PAGE);
    return { pages, isAnnotated: wantsAnnotations(step) };
  }
  if (body.kind !== "whole" || text?.includes(SEARCH) === false) return null;
  return expectedSearches(body.bytes);
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
  const { requestType, path, upstream } = step;
  if (upstream.body.kind !== "whole" || TEXT_TYPES.has(requestType)) return null;
  if (requestType === "images") return pictures(step);
  if (SPEECH_PATH.test(path)) return speech(upstream.body);
  if (RERANK_PATH.test(path)) return ranking(upstream.body);
  return PREDICT_PATH.test(path) ? predicted(upstream.body) : null;
}

const PICTURE_MEMBERS: ReadonlySet<string> = new Set(["size", "quality"]);
/** Tokens that OpenAI's models write for a picture, by quality; a picture that is not square has half as many again. Other qualities: the most. */
const PICTURE_TOKENS: ReadonlyMap<string, number> = new Map([
  ["low", 272],
  ["medium", 1056],
  ["high", 4160],
]);
const LARGEST_PICTURE_TOKENS = 6240;

function pictures({ upstream: { body }, choices }: Step): Pieces {
  const { size = "", quality = "" } = readTexts(body, PICTURE_MEMBERS);
  const isSquare = /^(\d+)x\1$/.test(size);
  const tokens = PICTURE_TOKENS.get(quality);
  const each = tokens === undefined ? LARGEST_PICTURE_TOKENS : Math.ceil(tokens * (isSquare ? 1 : 1.5));
  const imageForm = `${quality || "standard"} ${size || "1024x1024"}`;
  return { images: choices, imageForm, tokensOut: each * choices };
}

const SPEECH_MEMBERS: ReadonlySet<string> = new Set(["input"]);
/** Tokens of sound that a model writes for a character: 1,250 a minute, at 15 characters a second. */
const SOUND_TOKENS_PER_CHARACTER = 1.4;

function speech(body: RequestBody): Pieces | null {
  const { input } = readTexts(body, SPEECH_MEMBERS);
  if (input === undefined) return null;
  // Providers count characters, not units of UTF-16.
  const characters = Array.from(input).length;
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
