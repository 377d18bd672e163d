/**
 * The certificates of vendors that sign with one and name its address in each delivery (PayPal, SNS).
 *
 * Invariants:
 * 1. Only addresses that the scheme allows are loaded: the vendor's own hosts, over TLS, public addresses, no redirects.
 * 2. Strangers choose the addresses, so new ones are loaded at most `LOADS` a minute and kept within a limit. A certificate that is kept is not affected.
 * 3. A certificate counts while it is valid, and is loaded again after a day.
 * 4. A certificate that cannot be loaded now is 503, so that the vendor tries again; one that is no valid RSA certificate is a wrong signature.
 */
import { type KeyObject, X509Certificate } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.ts";
import { overloaded } from "../core/overload.ts";
import { TokenBucket } from "../core/token-bucket.ts";
import type { OutgoingReply, RequestSender } from "../outgoing/index.ts";

const TIMEOUT_MS = 5000;
const MAX_BYTES = 32 * 1024;
/** Vendors change their certificate once a year. */
const MAX_KEPT = 32;
const DAY_MS = 24 * 60 * 60 * 1000;
const LOADS = 12;
const MINUTE_MS = 60_000;

interface Loaded {
  /** Null if it cannot be used. */
  readonly key: KeyObject | null;
  readonly until: number;
}

export class Certificates {
  readonly #requests: RequestSender;
  readonly #clock: Clock;
  readonly #kept = new LRUCache<string, Loaded>({ max: MAX_KEPT });
  readonly #loading = new Map<string, Promise<Loaded>>();
  readonly #loads = new TokenBucket(LOADS, MINUTE_MS);

  constructor(requests: RequestSender, clock: Clock) {
    this.#requests = requests;
    this.#clock = clock;
  }

  /** The public key; null if the certificate cannot be used. Rejects if it cannot be loaded now. */
  async keyOf(url: string): Promise<KeyObject | null> {
    const kept = this.#kept.get(url);
    if (kept !== undefined && kept.until > this.#clock.now()) return kept.key;
    let loading = this.#loading.get(url);
    if (loading === undefined) {
      if (this.#loads.take() > 0) throw overloaded("Too many new certificates are requested");
      loading = this.#load(url).finally(() => this.#loading.delete(url));
      this.#loading.set(url, loading);
    }
    return (await loading).key;
  }

  /** Opens an address of the vendor, as a confirmation asks for. Rejects unless the answer is 2xx. */
  async visit(url: string): Promise<void> {
    const { status } = await this.#get(url, 0);
    if (status < 200 || status > 299) throw overloaded(`The address of the confirmation answered ${status}`);
  }

  async #load(url: string): Promise<Loaded> {
    const { status, body } = await this.#get(url, MAX_BYTES);
    if (status !== 200 && status !== 404) throw overloaded("The certificate of the sender cannot be loaded");
    const now = this.#clock.now();
    const loaded = status === 404 ? { key: null, until: now + MINUTE_MS } : read(body, now);
    this.#kept.set(url, loaded);
    return loaded;
  }

  async #get(url: string, keptBytes: number): Promise<OutgoingReply> {
    try {
      return await this.#requests.send({
        url,
        method: "GET",
        headers: { "user-agent": "signalbox" },
        body: "",
        timeoutMs: TIMEOUT_MS,
        keptBytes,
      });
    } catch {
      throw overloaded("The sender's host cannot be reached");
    }
  }
}

function read(pem: Buffer, now: number): Loaded {
  try {
    const certificate = new X509Certificate(pem);
    const from = Date.parse(certificate.validFrom);
    const to = Date.parse(certificate.validTo);
    const { publicKey } = certificate;
    const isValid = from <= now && now < to && publicKey.asymmetricKeyType === "rsa";
    if (isValid) return { key: publicKey, until: Math.min(to, now + DAY_MS) };
  } catch {
    // It is no certificate.
  }
  return { key: null, until: now + MINUTE_MS };
}
