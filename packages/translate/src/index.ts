export type { Dialect } from "./dialect.ts";
export { FailedResponseError, InvalidRequestError, UnsupportedFieldError } from "./errors.ts";
export type { ErrorKind, NeutralError } from "./neutral/neutral-error.ts";
export type { Effort } from "./neutral/request.ts";
export type { NeutralUsage } from "./neutral/usage.ts";
export type {
  OriginalTool,
  ReasoningControl,
  RequestOptions,
  ResponseContext,
  TargetTraits,
  TranslatedRequest,
} from "./options.ts";
export type { StreamTranslator } from "./stream-translator.ts";
export { createStreamTranslator } from "./stream-translator.ts";
export { defaultTraits } from "./traits.ts";
export { errorKindOf } from "./error-kind.ts";
export { estimateInputTokens } from "./estimate-tokens.ts";
export {
  encodeError,
  readUsage,
  streamResponse,
  translateError,
  translateRequest,
  translateResponse,
} from "./translate.ts";
export { offersWebSearch } from "./web-search.ts";
export type { EmbeddingsContext, TranslatedEmbeddings } from "./embeddings.ts";
export {
  embeddingsFromGemini,
  embeddingsToGemini,
  geminiEmbeddingsFromOpenAi,
  geminiEmbeddingsToOpenAi,
} from "./embeddings.ts";
