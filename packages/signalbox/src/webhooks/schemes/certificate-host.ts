/** Which addresses of certificates are used: a delivery names its certificate itself, so that only the vendor's own hosts may serve it. */

/** Null unless the address is HTTPS at its default port, at one of the hosts. */
export function onlyFrom(host: RegExp, text: unknown): string | null {
  const url = typeof text === "string" && text.length <= 512 ? URL.parse(text) : null;
  if (url === null || url.protocol !== "https:" || url.port !== "") return null;
  const isPlain = url.username === "" && url.password === "" && url.hash === "";
  return isPlain && host.test(url.hostname) ? url.href : null;
}
