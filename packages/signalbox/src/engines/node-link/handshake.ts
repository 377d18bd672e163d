/**
 * The handshake of a link: both sides prove that they know the cluster's secret, and agree on a version.
 *
 *   dialler                         listener
 *   hello {versions, node, nonce} ─►
 *                                 ◄─ hello {version, node, nonce, proof over both hellos}
 *   proof over both hellos        ─►
 *
 * Invariants:
 * 1. The secret itself is never sent. A proof is HMAC-SHA-256 over the side's name and both hellos, so a proof cannot be replayed on another
 *    connection, reflected to its sender, or combined with changed fields.
 * 2. The listener proves first: a stranger that dials learns one proof over its own nonce, and a node that dials a stranger sends no proof.
 * 3. Nothing but a hello is accepted before the proof of the other side has been checked.
 *
 * The handshake authenticates the two ends. Against an attacker who can change packets between the nodes, use TLS (`LinkSecurity`).
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";

/** The range of link versions that this code speaks. */
export const LINK_VERSIONS = { min: 1, max: 1 } as const;
/** A hello is small; a stranger cannot make the listener hold more. */
export const MAX_HELLO_BYTES = 4096;
const NONCE_BYTES = 32;

/** What a node reports about itself. */
export interface NodeHello {
  /** The incarnation: unique for each start of a process. */
  readonly node: string;
  /** The cluster's identity: nodes of two databases that share a secret must not be linked. */
  readonly cluster: string;
}

interface Hello extends NodeHello {
  readonly minVersion: number;
  readonly maxVersion: number;
  readonly nonce: string;
}

interface ListenerHello extends NodeHello {
  readonly version: number;
  readonly nonce: string;
  readonly proof: string;
}

export interface AgreedPeer {
  readonly node: string;
  readonly version: number;
}

export class HandshakeError extends Error {
  override readonly name = "HandshakeError";
}

/** The key of the proofs, derived from the secret, so that the secret may have any length. */
export function toLinkKey(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", "signalbox node link", 32));
}

export class DiallerHandshake {
  readonly #key: Buffer;
  readonly #self: NodeHello;
  readonly #hello: Buffer;

  constructor(key: Buffer, self: NodeHello) {
    this.#key = key;
    this.#self = self;
    const { min: minVersion, max: maxVersion } = LINK_VERSIONS;
    this.#hello = encode({ ...self, minVersion, maxVersion, nonce: nonce() });
  }

  get hello(): Buffer {
    return this.#hello;
  }

  /** Checks the listener's hello; returns the dialler's proof. */
  answer(payload: Buffer): { readonly peer: AgreedPeer; readonly proof: Buffer } {
    const hello = parseListenerHello(payload);
    const transcript = [this.#hello, unsigned(hello)];
    requireProof(this.#key, "listener", transcript, hello.proof);
    if (hello.version < LINK_VERSIONS.min || hello.version > LINK_VERSIONS.max) {
      throw new HandshakeError(`the other node chose version ${hello.version} of the link protocol`);
    }
    requireSameCluster(this.#self, hello);
    return {
      peer: { node: hello.node, version: hello.version },
      proof: Buffer.from(proofOf(this.#key, "dialler", transcript)),
    };
  }
}

export class ListenerHandshake {
  readonly #key: Buffer;
  readonly #self: NodeHello;
  #transcript: readonly Buffer[] = [];
  #peer: AgreedPeer | null = null;

  constructor(key: Buffer, self: NodeHello) {
    this.#key = key;
    this.#self = self;
  }

  /** Returns the listener's hello. */
  answer(payload: Buffer): Buffer {
    // Each answer costs more than the hello; a stranger gets one.
    if (this.#peer !== null) throw new HandshakeError("a second hello");
    const hello = parseHello(payload);
    const version = Math.min(hello.maxVersion, LINK_VERSIONS.max);
    if (version < Math.max(hello.minVersion, LINK_VERSIONS.min)) {
      throw new HandshakeError(
        `no common version of the link protocol: ${hello.minVersion} to ${hello.maxVersion} against ${LINK_VERSIONS.min} to ${LINK_VERSIONS.max}`,
      );
    }
    const own = { ...this.#self, version, nonce: nonce() };
    this.#transcript = [Buffer.from(payload), encode(own)];
    this.#peer = { node: hello.node, version };
    return encode({ ...own, proof: proofOf(this.#key, "listener", this.#transcript) });
  }

  /** Checks the dialler's proof. */
  finish(payload: Buffer): AgreedPeer {
    if (this.#peer === null) throw new HandshakeError("a proof before the hello");
    requireProof(this.#key, "dialler", this.#transcript, payload.toString("latin1"));
    // After the proof: a stranger learns nothing about this cluster.
    requireSameCluster(this.#self, parseHello(this.#transcript[0] ?? payload));
    return this.#peer;
  }
}

function requireSameCluster(self: NodeHello, other: NodeHello): void {
  if (self.cluster !== other.cluster) {
    throw new HandshakeError("the other node uses another database");
  }
  if (self.node === other.node) throw new HandshakeError("the node dialled itself");
}

function proofOf(key: Buffer, side: "dialler" | "listener", transcript: readonly Buffer[]): string {
  const hmac = createHmac("sha256", key).update(side);
  for (const part of transcript) {
    // The length first: two different transcripts never give the same bytes.
    hmac.update(`|${part.length}|`).update(part);
  }
  return hmac.digest("base64url");
}

function requireProof(
  key: Buffer,
  side: "dialler" | "listener",
  transcript: readonly Buffer[],
  proof: string,
): void {
  const expected = Buffer.from(proofOf(key, side, transcript));
  const given = Buffer.from(proof);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    throw new HandshakeError("wrong cluster secret");
  }
}

/** With all fields, also those that only a later version knows. */
function unsigned(received: ListenerHello): Buffer {
  return encode(Object.fromEntries(Object.entries(received).filter(([name]) => name !== "proof")));
}

function encode(hello: object): Buffer {
  return Buffer.from(JSON.stringify(hello));
}

function nonce(): string {
  return randomBytes(NONCE_BYTES).toString("base64url");
}

function parseHello(payload: Buffer): Hello {
  const hello = parse(payload);
  if (
    isText(hello["node"]) &&
    isText(hello["cluster"]) &&
    isText(hello["nonce"]) &&
    Number.isSafeInteger(hello["minVersion"]) &&
    Number.isSafeInteger(hello["maxVersion"])
  ) {
    return hello as unknown as Hello;
  }
  throw new HandshakeError("malformed hello");
}

function parseListenerHello(payload: Buffer): ListenerHello {
  const hello = parse(payload);
  if (
    isText(hello["node"]) &&
    isText(hello["cluster"]) &&
    isText(hello["nonce"]) &&
    isText(hello["proof"]) &&
    Number.isSafeInteger(hello["version"])
  ) {
    return hello as unknown as ListenerHello;
  }
  throw new HandshakeError("malformed hello");
}

function parse(payload: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(payload.toString("utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // Not JSON: reported below.
  }
  throw new HandshakeError("malformed hello");
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= 256;
}
