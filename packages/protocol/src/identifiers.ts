/** Ids of accounts and gateways. Users choose them, and they appear in URLs. */
const IDENTIFIER = /^[A-Za-z0-9_-]{1,64}$/;

export function isIdentifier(text: string): boolean {
  return IDENTIFIER.test(text);
}
