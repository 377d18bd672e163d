/**
 * Published prices that the price package does not have: of models that are billed by the picture, by the character or by the search, of sound in models
 * whose entry has only prices of text, and of a few models. A price of the package precedes.
 */
import type { ModelPrice } from "@pydantic/genai-prices";

/** Rates of pictures, and of seconds of film: the name of the rate is followed by quality (or `video`) and size. */
export const IMAGE_RATE = "image ";

interface FurtherPrice {
  /** The beginning of the model's name; dated versions follow it. Longer ones stand first. */
  readonly model: string;
  /** US dollars: a picture, a million characters, a thousand searches, a million tokens. */
  readonly rates: ModelPrice;
}

const OPENAI: readonly FurtherPrice[] = [
  { model: "tts-1-hd", rates: { characters_mcount: 30 } },
  { model: "tts-1", rates: { characters_mcount: 15 } },
  {
    model: "dall-e-3",
    rates: {
      "image standard 1024x1024": 0.04,
      "image standard 1024x1792": 0.08,
      "image standard 1792x1024": 0.08,
      "image hd 1024x1024": 0.08,
      "image hd 1024x1792": 0.12,
      "image hd 1792x1024": 0.12,
    },
  },
  {
    model: "dall-e-2",
    rates: {
      "image standard 256x256": 0.016,
      "image standard 512x512": 0.018,
      "image standard 1024x1024": 0.02,
    },
  },
  {
    model: "sora-2-pro",
    rates: {
      "image video 720x1280": 0.3,
      "image video 1280x720": 0.3,
      "image video 1024x1792": 0.5,
      "image video 1792x1024": 0.5,
    },
  },
  { model: "sora-2", rates: { "image video": 0.1 } },
  { model: "gpt-4o-audio-preview", rates: { input_audio_mtok: 40, output_audio_mtok: 80 } },
  { model: "gpt-4o-mini-audio-preview", rates: { input_audio_mtok: 10, output_audio_mtok: 20 } },
];

const FURTHER: Readonly<Record<string, readonly FurtherPrice[]>> = {
  openai: OPENAI,
  azure: OPENAI,
  google: [
    { model: "veo-3.1-fast-generate", rates: { "image video": 0.15 } },
    { model: "veo-3.1-generate", rates: { "image video": 0.4 } },
    { model: "veo-3.0-fast-generate", rates: { "image video": 0.15 } },
    { model: "veo-3.0-generate", rates: { "image video": 0.4 } },
    { model: "veo-2.0-generate", rates: { "image video": 0.35 } },
    { model: "imagen-4.0-ultra-generate", rates: { "image standard": 0.06 } },
    { model: "imagen-4.0-fast-generate", rates: { "image standard": 0.02 } },
    { model: "imagen-4.0-generate", rates: { "image standard": 0.04 } },
    { model: "imagen-3.0-generate", rates: { "image standard": 0.04 } },
  ],
  mistral: [
    { model: "mistral-large-4", rates: { input_mtok: 1.36, output_mtok: 4.18 } },
    { model: "mistral-large-3", rates: { input_mtok: 0.5, output_mtok: 1.5 } },
  ],
  groq: [{ model: "playai-tts", rates: { characters_mcount: 50 } }],
  cohere: [
    { model: "rerank-v4.0-pro", rates: { rankings_kcount: 2.5 } },
    { model: "rerank-v4.0-fast", rates: { rankings_kcount: 2 } },
    { model: "rerank-v3.5", rates: { rankings_kcount: 2 } },
    { model: "rerank-english-v3.0", rates: { rankings_kcount: 2 } },
    { model: "rerank-multilingual-v3.0", rates: { rankings_kcount: 2 } },
  ],
  voyageai: [
    { model: "rerank-2.5-lite", rates: { input_mtok: 0.02 } },
    { model: "rerank-2.5", rates: { input_mtok: 0.05 } },
    { model: "rerank-2-lite", rates: { input_mtok: 0.02 } },
    { model: "rerank-2", rates: { input_mtok: 0.05 } },
  ],
};

/** `packageId` is of `packageIdOf`. */
export function furtherPrices(packageId: string, model: string): ModelPrice | null {
  return entriesOf(packageId).find((entry) => model.startsWith(entry.model))?.rates ?? null;
}

/** The models of the table. */
export function furtherModels(packageId: string): string[] {
  return entriesOf(packageId).map(({ model }) => model);
}

function entriesOf(packageId: string): readonly FurtherPrice[] {
  return Object.hasOwn(FURTHER, packageId) ? (FURTHER[packageId] ?? []) : [];
}

/** US dollars for a million tokens that a model is trained with; dated versions follow the name. Longer ones stand first. */
const TRAINING: Readonly<Record<string, readonly (readonly [model: string, rate: number])[]>> = {
  openai: [
    ["gpt-4.1-mini", 5],
    ["gpt-4.1-nano", 1.5],
    ["gpt-4.1", 25],
    ["gpt-4o-mini", 3],
    ["gpt-4o", 25],
    ["gpt-3.5-turbo", 8],
    ["davinci-002", 6],
    ["babbage-002", 0.4],
  ],
};

/** Null for a model of which no price of training is known. */
export function trainingRate(packageId: string, model: string): number | null {
  const rates = Object.hasOwn(TRAINING, packageId) ? (TRAINING[packageId] ?? []) : [];
  return rates.find(([name]) => model.startsWith(name))?.[1] ?? null;
}
