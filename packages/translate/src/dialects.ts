/** The four dialects, each with the same set of functions. */
import { decodeOpenAiError } from "./chat/decode-error.ts";
import { decodeChatRequest } from "./chat/decode-request.ts";
import { decodeChatResponse } from "./chat/decode-response.ts";
import { ChatStreamDecoder } from "./chat/decode-stream.ts";
import { encodeOpenAiError } from "./chat/encode-error.ts";
import { encodeChatRequest } from "./chat/encode-request.ts";
import { encodeChatResponse } from "./chat/encode-response.ts";
import { ChatStreamEncoder } from "./chat/encode-stream.ts";
import { decodeChatUsage } from "./chat/usage.ts";
import type { Dialect } from "./dialect.ts";
import { decodeGeminiError } from "./gemini/decode-error.ts";
import { decodeGeminiRequest } from "./gemini/decode-request.ts";
import { decodeGeminiResponse } from "./gemini/decode-response.ts";
import { GeminiStreamDecoder } from "./gemini/decode-stream.ts";
import { encodeGeminiError } from "./gemini/encode-error.ts";
import { encodeGeminiRequest } from "./gemini/encode-request.ts";
import { encodeGeminiResponse } from "./gemini/encode-response.ts";
import { GeminiStreamEncoder } from "./gemini/encode-stream.ts";
import { decodeGeminiUsage } from "./gemini/usage.ts";
import { decodeMessagesError } from "./messages/decode-error.ts";
import { decodeMessagesRequest } from "./messages/decode-request.ts";
import { decodeMessagesResponse } from "./messages/decode-response.ts";
import { MessagesStreamDecoder } from "./messages/decode-stream.ts";
import { encodeMessagesError } from "./messages/encode-error.ts";
import { encodeMessagesRequest } from "./messages/encode-request.ts";
import { encodeMessagesResponse } from "./messages/encode-response.ts";
import { MessagesStreamEncoder } from "./messages/encode-stream.ts";
import { decodeMessagesUsage } from "./messages/usage.ts";
import type { StreamDecoder, StreamEncoder } from "./neutral/stream-event.ts";
import type { ResponseContext } from "./options.ts";
import type { DecodeRequest, EncodeRequest } from "./request-codec.ts";
import type {
  DecodeError,
  DecodeResponse,
  DecodeUsage,
  EncodeError,
  EncodeResponse,
  NewId,
} from "./response-codec.ts";
import { decodeResponsesRequest } from "./responses/decode-request.ts";
import { decodeResponsesResponse } from "./responses/decode-response.ts";
import { ResponsesStreamDecoder } from "./responses/decode-stream.ts";
import { encodeResponsesRequest } from "./responses/encode-request.ts";
import { encodeResponsesResponse } from "./responses/encode-response.ts";
import { ResponsesStreamEncoder } from "./responses/encode-stream.ts";
import { decodeResponsesUsage } from "./responses/usage.ts";
import { GEMINI_NAMES, MESSAGES_NAMES, OPENAI_NAMES, RESPONSES_NAMES, type NameRule } from "./tool-names.ts";

interface DialectCodec {
  readonly decodeRequest: DecodeRequest;
  readonly encodeRequest: EncodeRequest;
  readonly decodeResponse: DecodeResponse;
  readonly encodeResponse: EncodeResponse;
  readonly createDecoder: (newId: NewId) => StreamDecoder;
  readonly createEncoder: (context: ResponseContext) => StreamEncoder;
  readonly decodeError: DecodeError;
  readonly encodeError: EncodeError;
  /** The field of a response body that holds the usage. */
  readonly usageField: string;
  readonly decodeUsage: DecodeUsage;
  readonly toolNames: NameRule;
}

export const DIALECTS: Readonly<Record<Dialect, DialectCodec>> = {
  chat: {
    decodeRequest: decodeChatRequest,
    encodeRequest: encodeChatRequest,
    decodeResponse: decodeChatResponse,
    encodeResponse: encodeChatResponse,
    createDecoder: (newId) => new ChatStreamDecoder(newId),
    createEncoder: (context) => new ChatStreamEncoder(context),
    decodeError: decodeOpenAiError,
    encodeError: encodeOpenAiError,
    usageField: "usage",
    decodeUsage: decodeChatUsage,
    toolNames: OPENAI_NAMES,
  },
  messages: {
    decodeRequest: decodeMessagesRequest,
    encodeRequest: encodeMessagesRequest,
    decodeResponse: decodeMessagesResponse,
    encodeResponse: encodeMessagesResponse,
    createDecoder: () => new MessagesStreamDecoder(),
    createEncoder: (context) => new MessagesStreamEncoder(context),
    decodeError: decodeMessagesError,
    encodeError: encodeMessagesError,
    usageField: "usage",
    decodeUsage: decodeMessagesUsage,
    toolNames: MESSAGES_NAMES,
  },
  responses: {
    decodeRequest: decodeResponsesRequest,
    encodeRequest: encodeResponsesRequest,
    decodeResponse: decodeResponsesResponse,
    encodeResponse: encodeResponsesResponse,
    createDecoder: () => new ResponsesStreamDecoder(),
    createEncoder: (context) => new ResponsesStreamEncoder(context),
    decodeError: decodeOpenAiError,
    encodeError: encodeOpenAiError,
    usageField: "usage",
    decodeUsage: decodeResponsesUsage,
    toolNames: RESPONSES_NAMES,
  },
  gemini: {
    decodeRequest: decodeGeminiRequest,
    encodeRequest: encodeGeminiRequest,
    decodeResponse: decodeGeminiResponse,
    encodeResponse: encodeGeminiResponse,
    createDecoder: (newId) => new GeminiStreamDecoder(newId),
    createEncoder: (context) => new GeminiStreamEncoder(context),
    decodeError: decodeGeminiError,
    encodeError: encodeGeminiError,
    usageField: "usageMetadata",
    decodeUsage: decodeGeminiUsage,
    toolNames: GEMINI_NAMES,
  },
};
