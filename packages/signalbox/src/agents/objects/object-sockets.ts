/**
 * The hibernating WebSockets of all objects, by the key of the object. They stay open while the object is not in memory; a message loads it. The
 * end of the process ends them.
 */
import type { SocketEnd } from "./web-socket.ts";

/** As in the originals. */
const MAX_SOCKETS = 32_768;
const MAX_TAGS = 10;
const MAX_TAG_LENGTH = 256;

export interface AutoResponse {
  readonly request: string;
  readonly response: string;
}

/** A WebSocket that an object accepted on another node. */
export interface AdoptedSocket {
  readonly tags: readonly string[];
  readonly attachment: Uint8Array | null;
  readonly autoResponseAt: Date | null;
  readonly autoResponse: AutoResponse | null;
}

/** The sockets of one object. */
export class SocketSet {
  /** Those that are closing are among them until the close event has been handled. */
  readonly ends = new Set<SocketEnd>();
  /** Sent for a message that equals the request, without loading the object. */
  autoResponse: AutoResponse | null = null;

  list(tag?: string): SocketEnd[] {
    return tag === undefined ? [...this.ends] : [...this.ends].filter(({ tags }) => tags.includes(tag));
  }

  /** True when the message was answered. */
  answer(end: SocketEnd, message: string | ArrayBuffer, now: number): boolean {
    if (this.autoResponse === null || message !== this.autoResponse.request) return false;
    end.autoResponseAt = new Date(now);
    void end.transmit({ kind: "message", data: this.autoResponse.response });
    return true;
  }

  /** Ends all connections without a close frame, as a crash of the object would. */
  terminate(): void {
    const cut = [...this.ends];
    // Forgotten first: the client's answer to the close is not an event of an object that may be gone.
    this.ends.clear();
    for (const end of cut) void end.transmit({ kind: "close", code: 1006, reason: "", wasClean: false });
  }
}

export class ObjectSockets {
  readonly #sets = new Map<string, SocketSet>();

  find(key: string): SocketSet | undefined {
    return this.#sets.get(key);
  }

  /** The set of an object, created if necessary. */
  get(key: string): SocketSet {
    let set = this.#sets.get(key);
    if (set === undefined) {
      set = new SocketSet();
      this.#sets.set(key, set);
    }
    return set;
  }

  add(key: string, end: SocketEnd, tags: readonly string[]): SocketSet {
    const set = this.get(key);
    if (set.ends.size >= MAX_SOCKETS)
      throw new Error(`only ${MAX_SOCKETS} websockets can be accepted on a single Durable Object instance`);
    end.tags = checkTags(tags);
    set.ends.add(end);
    return set;
  }

  /** Adds an end that an object has accepted before. */
  adopt(key: string, end: SocketEnd, { autoResponse, ...socket }: AdoptedSocket): void {
    const isFirst = !this.#sets.has(key);
    const set = this.add(key, end, socket.tags);
    end.attachment = socket.attachment;
    end.autoResponseAt = socket.autoResponseAt;
    // An object in memory may have set another one.
    if (isFirst) set.autoResponse = autoResponse;
  }

  /** Removes the set of an object that leaves this node; undefined if it has none. */
  take(key: string): SocketSet | undefined {
    const set = this.#sets.get(key);
    this.#sets.delete(key);
    return set;
  }

  remove(key: string, end: SocketEnd): void {
    this.#sets.get(key)?.ends.delete(end);
  }

  /** The object has left memory: without connections nothing is left to keep. */
  releaseIfEmpty(key: string): void {
    if (this.#sets.get(key)?.ends.size === 0) this.#sets.delete(key);
  }
}

function checkTags(tags: readonly string[]): readonly string[] {
  const distinct = [...new Set(tags)];
  if (distinct.length > MAX_TAGS)
    throw new Error(`a Hibernatable WebSocket cannot have more than ${MAX_TAGS} tags`);
  for (const tag of distinct) {
    if (typeof tag !== "string") throw new TypeError("the tags of a Hibernatable WebSocket are strings");
    if (tag.length > MAX_TAG_LENGTH)
      throw new Error(`"${tag}" is longer than the max tag length (${MAX_TAG_LENGTH} characters).`);
  }
  return distinct;
}
