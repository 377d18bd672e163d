/** The address of a server as people write it: `--url 127.0.0.1:8787` needs no scheme. */
import { UsageError } from "./command.ts";

const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i;
/** Names and addresses that do not leave the machine or its network. A token is sent to other hosts without TLS only if `http://` is written. */
const NEARBY =
  /^(?:localhost|[^.:]+|127(?:\.\d+){3}|10(?:\.\d+){3}|192\.168(?:\.\d+){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d+){2}|\[[\da-f:.]+\])$/i;

/** Without a scheme: `http` for a machine nearby, `https` for any other. `origin` is the option or the variable, for the message. */
export function toServerUrl(text: string, origin: string): string {
  const written = text.trim();
  const scheme = SCHEME.test(written) ? "" : NEARBY.test(hostOf(written)) ? "http://" : "https://";
  let url: URL;
  try {
    url = new URL(scheme + written);
  } catch {
    throw new UsageError(`${origin}: expected an address like http://127.0.0.1:8787, found "${text}"`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new UsageError(`${origin}: expected http:// or https://, found "${text}"`);
  return url.href.replace(/\/+$/, "");
}

function hostOf(text: string): string {
  return /^(\[[^\]]*\]|[^:/?#]*)/.exec(text)?.[1] ?? "";
}
