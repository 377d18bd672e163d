/** What the request side of every dialect implements. */
import type { Dialect } from "./dialect.ts";
import type { Json } from "./json.ts";
import type { Losses } from "./losses.ts";
import type { NeutralRequest } from "./neutral/request.ts";
import type { FilledTraits } from "./traits.ts";
import type { ToolNames } from "./tool-names.ts";

export type DecodeRequest = (body: Json, losses: Losses) => NeutralRequest;

export interface EncodeEnvironment {
  readonly from: Dialect;
  readonly model: string;
  readonly traits: FilledTraits;
  readonly losses: Losses;
  readonly names: ToolNames;
  /** Prompts that will be repeated get marks of the prompt cache. */
  readonly marksCache: boolean;
}

export type EncodeRequest = (
  request: NeutralRequest,
  environment: EncodeEnvironment,
) => Record<string, unknown>;
