/** Self-signed certificates for tests, made by openssl: no private key is stored in the repository. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
  /** The content of the file `cert`. */
  readonly pem: string;
}

/** Writes `<name>.crt` and `<name>.key` to the folder. `altName` is e.g. `DNS:localhost,IP:127.0.0.1`. Valid for 30 days. */
export function makeCertificate(
  folder: string,
  name: string,
  altName: string,
  kind: "ec" | "rsa" = "ec",
): TestCertificate {
  const cert = join(folder, `${name}.crt`);
  const key = join(folder, `${name}.key`);
  execFileSync(
    "openssl",
    `req -x509 ${kind === "ec" ? "-newkey ec -pkeyopt ec_paramgen_curve:P-256" : "-newkey rsa:2048"} -nodes -days 30 -subj /CN=${name}`
      .split(" ")
      .concat("-addext", `subjectAltName=${altName}`, "-keyout", key, "-out", cert),
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  return { cert, key, pem: readFileSync(cert, "utf8") };
}
