/** Accounts and gateways are named by people, appear in URLs and file-like listings, and so keep to a plain alphabet. */
const IDENTIFIER = /^[A-Za-z0-9_-]{1,64}$/;

export function isIdentifier(text: string): boolean {
  return IDENTIFIER.test(text);
}
