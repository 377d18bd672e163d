/**
 * The handshake of a link: both sides prove that they know the cluster's secret, and agree on a version. The one that dials proves first:
 *
 *   dialler                         listener
 *   hello {versions, node, nonce} ─►
 *                                 ◄─ hello {version, nonce}
 *   proof over both hellos        ─►
 *                                 ◄─ proof {node, proof over both hellos and its node}
 *
 * Version 1, which nodes of the former release speak: the listener's hello has its node and its proof, and nothing follows the dialler's proof.
 *
 * Invariants:
 * 1. The secret itself is never sent. A proof is HMAC-SHA-256 over the side's name and both hellos, so a proof cannot be replayed on another
 *    connection, reflected to its sender, or combined with changed fields.
 * 2. A stranger that dials learns a random number: nothing about this cluster, and no proof with which guesses of the secret could be checked. Anybody
 *    who reaches the port can dial it; to be dialled, a stranger must have the address of a node. In version 1 only a dialler that names the cluster's
 *    id, a random one, gets the listener's proof. See README.md.
 * 3. Nothing but a hello is accepted before the proof of the other side has been checked.
 *
 * The handshake authenticates the two ends. Against an attacker who can change packets between the nodes, use TLS (`LinkSecurity`).
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";

/** The range of link versions that this code speaks. */
export const LINK_VERSIONS = { min: 1, max: 2 } as const;
/** The dialler proves itself first from this version on. */
const DIALLER_FIRST = 2;
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

interface ListenerHello {
  readonly version: number;
  readonly nonce: string;
}

/** Who the listener is: a part of its hello in version 1, an answer to the dialler's proof later. */
interface ListenerProof extends NodeHello {
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
  #transcript: readonly Buffer[] | null = null;

  constructor(key: Buffer, self: NodeHello) {
    this.#key = key;
    this.#self = self;
    const { min: minVersion, max: maxVersion } = LINK_VERSIONS;
    this.#hello = encode({ ...self, minVersion, maxVersion, nonce: nonce() });
  }

  get hello(): Buffer {
    return this.#hello;
  }

  /** Checks the listener's hello; returns the dialler's proof. `peer` is null if the listener has to prove itself yet. */
  answer(payload: Buffer): { readonly peer: AgreedPeer | null; readonly proof: Buffer } {
    if (this.#transcript !== null) throw new HandshakeError("a second hello");
    const { version } = parseListenerHello(payload);
    if (version < LINK_VERSIONS.min || version > LINK_VERSIONS.max) {
      throw new HandshakeError(`the other node chose version ${version} of the link protocol`);
    }
    const isFirst = version >= DIALLER_FIRST;
    const transcript = [this.#hello, isFirst ? Buffer.from(payload) : withoutProof(payload)];
    this.#transcript = transcript;
    const peer = isFirst ? null : this.#check(parseListenerProof(payload), transcript, version);
    return { peer, proof: Buffer.from(proofOf(this.#key, "dialler", transcript)) };
  }

  /** Checks the listener's proof. */
  finish(payload: Buffer): AgreedPeer {
    const [hello, challenge] = this.#transcript ?? [];
    if (hello === undefined || challenge === undefined) throw new HandshakeError("a proof before the hello");
    const transcript = [hello, challenge, withoutProof(payload)];
    return this.#check(parseListenerProof(payload), transcript, parseListenerHello(challenge).version);
  }

  #check(listener: ListenerProof, transcript: readonly Buffer[], version: number): AgreedPeer {
    requireProof(this.#key, "listener", transcript, listener.proof);
    requireSameCluster(this.#self, listener);
    return { node: listener.node, version };
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
    this.#peer = { node: hello.node, version };
    if (version >= DIALLER_FIRST) {
      const challenge = encode({ version, nonce: nonce() });
      this.#transcript = [Buffer.from(payload), challenge];
      return challenge;
    }
    // This side must prove itself first: only to a peer that knows the cluster.
    requireSameCluster(this.#self, hello);
    const own = { ...this.#self, version, nonce: nonce() };
    this.#transcript = [Buffer.from(payload), encode(own)];
    return this.#prove(own, this.#transcript);
  }

  /** Checks the dialler's proof. `proof` is the listener's own; null if the dialler has it already. */
  finish(payload: Buffer): { readonly peer: AgreedPeer; readonly proof: Buffer | null } {
    if (this.#peer === null) throw new HandshakeError("a proof before the hello");
    requireProof(this.#key, "dialler", this.#transcript, payload.toString("latin1"));
    // After the proof: a stranger learns nothing about this cluster.
    requireSameCluster(this.#self, parseHello(this.#transcript[0] ?? payload));
    const isFirst = this.#peer.version >= DIALLER_FIRST;
    const proof = isFirst ? this.#prove(this.#self, [...this.#transcript, encode(this.#self)]) : null;
    return { peer: this.#peer, proof };
  }

  #prove(own: object, transcript: readonly Buffer[]): Buffer {
    return encode({ ...own, proof: proofOf(this.#key, "listener", transcript) });
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

/** What the listener has signed: all other fields, also those that only a later version knows. */
function withoutProof(payload: Buffer): Buffer {
  return encode(Object.fromEntries(Object.entries(parse(payload)).filter(([name]) => name !== "proof")));
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
  if (isText(hello["nonce"]) && Number.isSafeInteger(hello["version"])) {
    return hello as unknown as ListenerHello;
  }
  throw new HandshakeError("malformed hello");
}

function parseListenerProof(payload: Buffer): ListenerProof {
  const proof = parse(payload);
  if (isText(proof["node"]) && isText(proof["cluster"]) && isText(proof["proof"])) {
    return proof as unknown as ListenerProof;
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
