/**
 * The certificate and private key of a listener, read from two PEM files, and read again while the server runs.
 *
 * Invariants:
 * 1. What is in use is a pair that was checked: both files parse, the key belongs to the certificate, and the certificate had not expired.
 * 2. Files that are wrong after a change do not replace the pair in use. A renewal writes two files, so a moment with a new certificate and an
 *    old key is normal; the next look finds both.
 * 3. A new pair applies to new connections; open ones continue.
 * See README.md.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";

export type TlsVersion = "TLSv1.2" | "TLSv1.3";

export interface CertificateFiles {
  /** PEM: the certificate of the server first, then the intermediate ones. */
  readonly cert: string;
  /** PEM, without a passphrase. */
  readonly key: string;
  readonly minVersion: TlsVersion;
}

/** The files cannot be used. The message is one line for the operator, and names the file. */
export class CertificateError extends Error {
  override readonly name = "CertificateError";
}

/** What a listener needs. */
export interface SecureOptions {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly minVersion: TlsVersion;
}

interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly leaf: X509Certificate;
}

export class ServerCertificate {
  readonly #files: CertificateFiles;
  readonly #now: () => number;
  readonly #listeners: ((options: SecureOptions) => void)[] = [];
  #pair: Pair;
  /** The pair that was refused last: it is reported once. */
  #refused: Pick<Pair, "cert" | "key"> | null = null;
  /** How often a file could not be read, in a row. */
  #missed = 0;

  /** Throws `CertificateError`. `now` returns milliseconds since 1970. */
  constructor(files: CertificateFiles, now: () => number = Date.now) {
    this.#files = files;
    this.#now = now;
    this.#pair = check(files, read(files), now());
  }

  get options(): SecureOptions {
    const { cert, key } = this.#pair;
    return { cert, key, minVersion: this.#files.minVersion };
  }

  /** PEM of the certificate of the server alone. */
  get leafPem(): string {
    return this.#pair.leaf.toString();
  }

  get expiresAt(): number {
    return Date.parse(this.#pair.leaf.validTo);
  }

  /** Names and addresses that the certificate is for, as in `subjectAltName`; the subject if it has none. */
  get names(): string {
    return this.#pair.leaf.subjectAltName ?? this.#pair.leaf.subject;
  }

  /** `use` is called with each new pair. */
  onChange(use: (options: SecureOptions) => void): void {
    this.#listeners.push(use);
  }

  /**
   * Reads the files again. Returns true if a new pair is in use. Throws `CertificateError` if the files are wrong, once for the same content
   * unless `isAsked`.
   */
  reload({ isAsked = false } = {}): boolean {
    const found = this.#look(isAsked);
    if (found === null) return false;
    if (isSame(found, this.#pair)) {
      this.#refused = null;
      return false;
    }
    if (!isAsked && this.#refused !== null && isSame(found, this.#refused)) return false;
    this.#refused = found;
    this.#pair = check(this.#files, found, this.#now());
    this.#refused = null;
    for (const use of this.#listeners) use(this.options);
    return true;
  }

  /** Null if a file is missing and no caller asked for it: while it is replaced that is normal for a moment, so it is reported at the second look. */
  #look(isAsked: boolean): Pick<Pair, "cert" | "key"> | null {
    try {
      const found = read(this.#files);
      this.#missed = 0;
      return found;
    } catch (error) {
      this.#missed += 1;
      if (isAsked || this.#missed === 2) throw error;
      return null;
    }
  }
}

function isSame(a: Pick<Pair, "cert" | "key">, b: Pick<Pair, "cert" | "key">): boolean {
  return a.cert.equals(b.cert) && a.key.equals(b.key);
}

function read({ cert, key }: CertificateFiles): Pick<Pair, "cert" | "key"> {
  return { cert: readPem(cert, "certificate"), key: readPem(key, "private key") };
}

function readPem(path: string, what: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const problem =
      code === "ENOENT"
        ? "the file does not exist"
        : code === "EACCES"
          ? "this user may not read the file"
          : code === "EISDIR"
            ? "it is a folder"
            : (cause as Error).message;
    throw new CertificateError(`cannot read the TLS ${what} ${path}: ${problem}`, { cause });
  }
}

function check(files: CertificateFiles, { cert, key }: Pick<Pair, "cert" | "key">, now: number): Pair {
  const leaf = parseCertificate(files.cert, cert);
  const privateKey = parseKey(files.key, key);
  if (!leaf.checkPrivateKey(privateKey))
    throw new CertificateError(
      `the TLS private key ${files.key} does not belong to the first certificate in ${files.cert}`,
    );
  if (Date.parse(leaf.validTo) <= now)
    throw new CertificateError(`the TLS certificate ${files.cert} expired on ${isoDate(leaf.validTo)}`);
  try {
    createSecureContext({ cert, key, minVersion: files.minVersion });
  } catch (cause) {
    // For example a key that is too short, or a broken intermediate certificate.
    throw new CertificateError(`the TLS certificate ${files.cert} cannot be used: ${reason(cause)}`, {
      cause,
    });
  }
  return { cert, key, leaf };
}

function parseCertificate(path: string, pem: Buffer): X509Certificate {
  const text = pem.toString("latin1");
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw new CertificateError(
      `the TLS certificate ${path} contains no "BEGIN CERTIFICATE"${text.includes("PRIVATE KEY-----") ? ": it is a private key" : " (PEM is expected)"}`,
    );
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new CertificateError(`the TLS certificate ${path} cannot be parsed: ${reason(cause)}`, { cause });
  }
}

function parseKey(path: string, pem: Buffer): KeyObject {
  const text = pem.toString("latin1");
  if (!text.includes("PRIVATE KEY-----"))
    throw new CertificateError(
      `the TLS private key ${path} contains no "PRIVATE KEY"${text.includes("BEGIN CERTIFICATE") ? ": it is a certificate" : " (PEM is expected)"}`,
    );
  if (/ENCRYPTED/.test(text))
    throw new CertificateError(
      `the TLS private key ${path} has a passphrase, which a server cannot enter: store it without one`,
    );
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new CertificateError(`the TLS private key ${path} cannot be parsed: ${reason(cause)}`, { cause });
  }
}

function isoDate(text: string): string {
  return new Date(text).toISOString().slice(0, 10);
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
