/** Checks the TLS certificate: `serve` refuses to start with one that it cannot use. */
import { statSync } from "node:fs";
import { CertificateError, ServerCertificate } from "../../engines/http-server/index.ts";
import { fail, type Finding, ok, type Patient, warn } from "./finding.ts";

const CHECK = "certificate";
const DAY_MS = 86_400_000;
/** Certificates of Let's Encrypt are renewed 30 days before their end; what is left at 14 was not renewed. */
const WARN_DAYS = 14;

/** `now`: milliseconds since 1970. */
export function checkCertificate({ config }: Patient, now: number = Date.now()): Finding[] {
  if (config === null || config.tls === null) return [];
  const { cert, key } = config.tls;
  try {
    const { expiresAt, names } = new ServerCertificate(config.tls, () => now);
    const days = Math.floor((expiresAt - now) / DAY_MS);
    const text = `${cert} is for ${names} and expires in ${days} days`;
    return [
      days < WARN_DAYS
        ? warn(CHECK, text, "renew it; the server reads it again when the file changes")
        : ok(CHECK, text),
      ...checkKeyFile(key),
    ];
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    return [fail(CHECK, error.message, "correct the files; `signalbox serve` refuses to start with them")];
  }
}

/** A group may read it: certbot and Debian use one for keys. */
function checkKeyFile(path: string): Finding[] {
  const mode = statSync(path).mode & 0o777;
  return (mode & 0o007) === 0
    ? []
    : [fail("secrets", `${path} is readable by all users (mode ${mode.toString(8)})`, `chmod o= ${path}`)];
}
