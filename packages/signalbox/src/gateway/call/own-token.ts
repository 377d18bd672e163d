/**
 * A token of this service must not leave it: a client that sends its Signalbox token, or the root token, where the provider's key belongs
 * would hand it to the provider. Tokens are known by their form and checksum, the root token by comparison.
 */
import { isTokenShaped, SignalboxError } from "@signalbox/protocol";

/** The part of the authenticator that this needs. */
export interface RootTokenCheck {
  isRootToken(text: string): boolean;
}

const TOKEN_PREFIX = "sbx_";
const TOKEN = /sbx_[0-9A-Za-z]{46}/g;
/** The root token has at least as many characters, a token has more: most headers and paths need no closer look. */
const MIN_LENGTH = 20;

/** Throws `gateway_unauthorized` for the value of a header that would be forwarded and holds a token of ours. */
export function refuseOwnToken(root: RootTokenCheck, value: string): void {
  if (value.length < MIN_LENGTH) return;
  if (holdsToken(value) || root.isRootToken(value)) throw misplaced();
  const space = value.indexOf(" ");
  if (space === -1) return;
  const credential = value.slice(space + 1).trim();
  if (root.isRootToken(credential)) throw misplaced();
  if (space === 5 && value.slice(0, 5).toLowerCase() === "basic") {
    const decoded = Buffer.from(credential, "base64").toString("latin1");
    if (holdsToken(decoded) || decoded.split(":").some((part) => root.isRootToken(part))) throw misplaced();
  }
}

/** The same for the address that is forwarded: some interfaces take their key in the query or the path. */
export function refuseOwnTokenInTarget(root: RootTokenCheck, path: string, query: string): void {
  if (
    path.length >= MIN_LENGTH &&
    (holdsToken(decode(path)) || path.split("/").some((part) => root.isRootToken(decode(part))))
  ) {
    throw misplaced();
  }
  if (query.length < MIN_LENGTH) return;
  if (holdsToken(decode(query))) throw misplaced();
  for (const pair of query.split("&")) {
    if (root.isRootToken(decode(pair.slice(pair.indexOf("=") + 1)))) throw misplaced();
  }
}

function holdsToken(text: string): boolean {
  if (!text.includes(TOKEN_PREFIX)) return false;
  return text.match(TOKEN)?.some(isTokenShaped) === true;
}

function decode(text: string): string {
  if (!text.includes("%")) return text;
  // Escape by escape: a text that is not UTF-8 as a whole may still hold a token.
  return text.replaceAll(/%([0-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function misplaced(): SignalboxError {
  return new SignalboxError("gateway_unauthorized", {
    message: "A Signalbox token stands where the provider's key belongs; send it as gw-aig-authorization",
  });
}
