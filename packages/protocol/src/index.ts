export { ERROR_TABLE, type ErrorArea, type ErrorEntry, type ErrorName } from "./error-table.ts";
export { SignalboxError, type ErrorDetails } from "./signalbox-error.ts";
export { PERMISSIONS, type Permission } from "./permissions.ts";
export { DOOR_WORDS, isIdentifier } from "./identifiers.ts";
export { generateToken, isTokenShaped, tokenSuffix } from "./token-format.ts";
export {
  type ClientFrame,
  type IdentityFrame,
  kebabCase,
  parseClientFrame,
  type RpcRequestFrame,
  type RpcResponseFrame,
  type ServerFrame,
  type StateErrorFrame,
  type StateFrame,
} from "./agent-frames.ts";
export {
  canonicalTags,
  checkTagKey,
  checkTags,
  checkTagValue,
  foldCase,
  isLongerThan,
  parseCanonicalTags,
  TAG_LIMITS,
  type Tags,
} from "./tag-rules.ts";
export {
  formatTagFilter,
  matchesTags,
  parseTagFilter,
  parseTagFilters,
  type TagFilter,
} from "./tag-filter.ts";
export { TAG_RESOURCE_TYPES, type TagResourceType } from "./tag-resource-types.ts";
export { isFinalCloseCode, parseServerFrame } from "./parse-server-frame.ts";
