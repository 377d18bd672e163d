/** What the response side of every dialect implements. */
import type { Json } from "./json.ts";
import type { NeutralError } from "./neutral/neutral-error.ts";
import type { NeutralResponse } from "./neutral/response.ts";
import type { NeutralUsage } from "./neutral/usage.ts";
import type { ResponseContext } from "./options.ts";

/** Makes ids for calls of a dialect that may have none. */
export type NewId = (prefix: string) => string;

export type DecodeResponse = (body: Json, newId: NewId) => NeutralResponse;
export type EncodeResponse = (response: NeutralResponse, context: ResponseContext) => Record<string, unknown>;
export type DecodeUsage = (usage: Json) => NeutralUsage;
export type DecodeError = (status: number, body: unknown) => NeutralError;
export type EncodeError = (error: NeutralError) => Record<string, unknown>;
