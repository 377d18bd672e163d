/**
 * Values on the wire between two nodes: a structured clone, and beside it a list of what a clone cannot hold.
 *
 * The copy of a value has an empty object wherever such a thing was, and the list names that object together with what belongs there. A clone
 * keeps the identity of objects, so nothing in a program's data can be taken for an entry of the list.
 */
import { deserialize, serialize } from "node:v8";
import { currentWork } from "../../objects/current-work.ts";
import { fetchFollowing } from "../../objects/follow-redirects.ts";
import type { ObjectAddress } from "../../objects/object-calls.ts";
import { makeDisposable, refused, replaceReferences, transferArguments } from "../../objects/rpc-values.ts";
import { type CallTarget, createStub, ServiceStub, targetOf } from "../../objects/rpc-stub.ts";
import { WorkerWebSocket } from "../../objects/web-socket.ts";
import type { Finds, Offers, Reference } from "./references.ts";
import { blobOf, type BlobParts, describeBlob, formOf, type FormEntry } from "./wire-blobs.ts";
import { errorOf, type WireError, describeError } from "./wire-errors.ts";
import { describeRequest, describeResponse, requestOf, responseOf } from "./wire-requests.ts";
import type { WireRequest, WireResponse } from "./wire-requests.ts";
import { MAX_MESSAGE_BYTES } from "./wire-message.ts";
import { readableOf, readableTarget, writableOf, writableTarget } from "./wire-streams.ts";

type Special =
  | {
      readonly kind: "stub";
      readonly reference: Reference;
      readonly isCallable: boolean;
      /** Of an object or an entrypoint: it has `fetch`. */
      readonly isService: boolean;
    }
  | { readonly kind: "object"; readonly address: ObjectAddress }
  | { readonly kind: "error"; readonly error: WireError }
  | { readonly kind: "view"; readonly type: string; readonly buffer: ArrayBuffer }
  | { readonly kind: "readable" | "writable" | "socket"; readonly reference: Reference }
  | {
      readonly kind: "signal";
      readonly reference: Reference;
      readonly reason: { readonly value: unknown } | null;
    }
  | { readonly kind: "request"; readonly request: WireRequest }
  | { readonly kind: "response"; readonly response: WireResponse }
  | { readonly kind: "headers" | "params"; readonly entries: [string, string][] }
  | { readonly kind: "url"; readonly href: string }
  | { readonly kind: "blob"; readonly blob: BlobParts }
  | { readonly kind: "form"; readonly entries: FormEntry[] };

type Entry = Special & { readonly at: object };

/** The bytes of a value that was transferred (`transfer`). Throws `DataCloneError` for what cannot leave this process. */
export function encodeValue(value: unknown, offers: Offers): Buffer {
  const entries: Entry[] = [];
  const body = replaceReferences(value, (special) => {
    const described = describe(special, offers);
    if (described === null) return undefined;
    const at = {};
    entries.push({ at, ...described });
    return at;
  });
  let bytes: Buffer;
  try {
    bytes = serialize(entries.length === 0 ? [body] : [body, entries]);
  } catch (error) {
    throw new DOMException(error instanceof Error ? error.message : String(error), "DataCloneError");
  }
  if (bytes.length > MAX_MESSAGE_BYTES)
    throw new RangeError(
      `Serialized RPC arguments or return values are limited to 32MiB, but the size of this value was: ${bytes.length} bytes.`,
    );
  return bytes;
}

export interface Decoded {
  /** Complete when `loading` has resolved. */
  readonly value: unknown;
  /** Null unless parts of the value have to be read first. */
  readonly loading: Promise<void> | null;
}

/** Adds the stubs of the value to `stubs`. */
export function decodeValue(bytes: Uint8Array, finds: Finds, stubs: object[] = []): Decoded {
  const [body, entries = []] = deserialize(bytes) as [unknown, Entry[]?];
  if (entries.length === 0) return { value: body, loading: null };
  const specials = new Map<object, unknown>();
  const loading: Promise<void>[] = [];
  const later = (at: object, load: Promise<unknown>) =>
    loading.push(load.then((value) => void specials.set(at, value)));
  for (const entry of entries) {
    if (entry.kind === "blob") later(entry.at, blobOf(entry.blob, finds));
    else if (entry.kind === "form") later(entry.at, formOf(entry.entries, finds));
    else specials.set(entry.at, build(entry, finds, stubs));
  }
  if (loading.length === 0) return { value: restore(body, specials, new Set()), loading: null };
  const decoded = { value: undefined as unknown, loading: null as Promise<void> | null };
  decoded.loading = Promise.all(loading).then(() => {
    decoded.value = restore(body, specials, new Set());
  });
  return decoded;
}

/** A result: an object is disposed with the stubs that it contains. */
export async function decodeResult(bytes: Uint8Array, finds: Finds): Promise<unknown> {
  const stubs: object[] = [];
  const decoded = decodeValue(bytes, finds, stubs);
  if (decoded.loading !== null) await decoded.loading;
  makeDisposable(decoded.value, stubs);
  return decoded.value;
}

/** Null for a value that a clone can hold. */
function describe(value: object, offers: Offers): Special | null {
  const target = targetOf(value);
  if (target !== undefined) return describeStub(value, target, offers);
  if (Array.isArray(value)) return null;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return null;
  if (ArrayBuffer.isView(value)) return describeView(value);
  if (value instanceof Error) return { kind: "error", error: describeError(value) };
  if (value instanceof Map || value instanceof Set || value instanceof Date) return null;
  if (value instanceof WorkerWebSocket) return { kind: "socket", reference: offers.socket(value) };
  return describeWebValue(value, offers);
}

function describeStub(stub: object, target: CallTarget, offers: Offers): Special {
  if (target.address !== undefined && offers.sharesObjects)
    return { kind: "object", address: { ...target.address } };
  const isService = stub instanceof ServiceStub;
  const release = (wasDisposed: boolean) => {
    // The stub of a service is the binding itself: it has nothing to dispose, and others use it.
    if (wasDisposed && !isService) (stub as Disposable)[Symbol.dispose]();
  };
  return {
    kind: "stub",
    reference: offers.target(target, release),
    isCallable: typeof stub === "function",
    isService,
  };
}

function describeView(view: ArrayBufferView): Special {
  const { buffer, byteOffset, byteLength } = view;
  // A subclass, for example `Buffer`, arrives as the class of the language that it extends, as in a clone.
  const type = Object.prototype.toString.call(view).slice("[object ".length, -1);
  return { kind: "view", type, buffer: new Uint8Array(buffer, byteOffset, byteLength).slice().buffer };
}

function describeWebValue(value: object, offers: Offers): Special | null {
  if (value instanceof ReadableStream)
    return { kind: "readable", reference: offerReadable(value as ReadableStream, offers) };
  if (value instanceof WritableStream) {
    const target = writableTarget(value as WritableStream);
    return { kind: "writable", reference: offers.target(target, () => target.dispose()) };
  }
  if (value instanceof Headers) return { kind: "headers", entries: [...value] };
  if (value instanceof Request) {
    const request = describeRequest(
      value,
      (body) => offerReadable(body, offers),
      offers.signal(value.signal),
    );
    return { kind: "request", request };
  }
  if (value instanceof Response) {
    const { webSocket } = value as Response & { readonly webSocket?: WorkerWebSocket | null };
    const socket = webSocket === null || webSocket === undefined ? null : offers.socket(webSocket);
    return {
      kind: "response",
      response: describeResponse(value, (body) => offerReadable(body, offers), socket),
    };
  }
  if (value instanceof AbortSignal) {
    const reason = value.aborted ? { value: plainReason(value.reason) } : null;
    return { kind: "signal", reference: offers.signal(value), reason };
  }
  if (value instanceof URL) return { kind: "url", href: value.href };
  if (value instanceof URLSearchParams) return { kind: "params", entries: [...value] };
  const offerBlob = (blob: Blob) => describeBlob(blob, (body) => offerReadable(body, offers));
  if (value instanceof Blob) return { kind: "blob", blob: offerBlob(value) };
  if (value instanceof FormData)
    return {
      kind: "form",
      entries: [...value].map(([name, item]) => [name, typeof item === "string" ? item : offerBlob(item)]),
    };
  if (value instanceof TransformStream) throw refused("A TransformStream");
  return null;
}

function offerReadable(stream: ReadableStream, offers: Offers): Reference {
  const target = readableTarget(stream);
  return offers.target(target, () => target.dispose());
}

/** The reason of an abort is often an error; what is not plain is told as text. */
export function plainReason(reason: unknown): unknown {
  if (reason instanceof Error) return { error: describeError(reason) };
  return typeof reason === "object" || typeof reason === "function"
    ? { text: toText(reason) }
    : { plain: reason };
}

const toText: (value: unknown) => string = String;

export function reasonOf(wire: unknown): unknown {
  const { error, text, plain } = wire as { error?: WireError; text?: string; plain?: unknown };
  return error !== undefined ? errorOf(error) : (text ?? plain);
}

function build(entry: Exclude<Special, { kind: "blob" | "form" }>, finds: Finds, stubs: object[]): unknown {
  switch (entry.kind) {
    case "stub": {
      const { isCallable, isService } = entry;
      const target = outputOf(finds.target(entry.reference));
      const stub = createStub(
        target,
        isService ? { isCallable, isService, ...fetching(target) } : { isCallable },
      );
      stubs.push(stub);
      return stub;
    }
    case "object":
      return finds.object(entry.address);
    case "error":
      return errorOf(entry.error);
    case "view":
      return viewOf(entry.type, entry.buffer);
    case "readable":
      return readableOf(finds.target(entry.reference));
    case "writable":
      return writableOf(outputOf(finds.target(entry.reference)));
    case "socket":
      return finds.socket(entry.reference);
    case "signal":
      return entry.reason === null
        ? finds.signal(entry.reference)
        : AbortSignal.abort(reasonOf(entry.reason.value));
    case "request":
      return requestOf(entry.request, finds);
    case "response":
      return responseOf(entry.response, finds);
    case "headers":
      return new Headers(entry.entries);
    case "params":
      return new URLSearchParams(entry.entries);
    case "url":
      return new URL(entry.href);
  }
}

/** A call to the other node is an output of the object that makes it: it leaves when everything that the object wrote is durable. */
function outputOf(target: CallTarget): CallTarget {
  return {
    send: async (path, args) => {
      const caller = currentWork();
      const copies = args === null ? null : transferArguments(args, caller ?? null);
      if (caller !== undefined) await caller.passGate();
      return target.send(path, copies);
    },
    dispose: () => target.dispose?.(),
  };
}

/** `fetch` of a service on the other side: its arguments become a request here. */
function fetching(target: CallTarget): { members: Record<string, unknown> } {
  const fetch = (input: string | URL | Request, init?: RequestInit) =>
    fetchFollowing(input, init, async (request) => (await target.send(["fetch"], [request])) as Response);
  return { members: { fetch } };
}

type ViewClass = new (buffer: ArrayBuffer) => ArrayBufferView;

function viewOf(type: string, buffer: ArrayBuffer): ArrayBufferView {
  const View = (globalThis as unknown as Record<string, ViewClass>)[type];
  return View !== undefined && VIEWS.has(type) ? new View(buffer) : new Uint8Array(buffer);
}

/** Puts the specials in their places. Everything else is changed in place: no other code has seen it yet. */
function restore(value: unknown, specials: ReadonlyMap<object, unknown>, seen: Set<object>): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (specials.has(value)) return specials.get(value);
  if (seen.has(value)) return value;
  seen.add(value);
  const visit = (item: unknown) => restore(item, specials, seen);
  if (value instanceof Map) {
    const entries = [...value];
    value.clear();
    for (const [key, item] of entries) value.set(visit(key), visit(item));
  } else if (value instanceof Set) {
    const items = [...value];
    value.clear();
    for (const item of items) value.add(visit(item));
  } else if (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype) {
    const holder = value as Record<string, unknown>;
    for (const name of Object.keys(holder)) {
      const item = holder[name];
      if (typeof item === "object" && item !== null)
        Object.defineProperty(holder, name, { ...OWN, value: visit(item) });
    }
  }
  return value;
}

/** Only these: the name comes from the other side. */
const VIEWS: ReadonlySet<string> = new Set([
  "BigInt64Array",
  "BigUint64Array",
  "DataView",
  "Float16Array",
  "Float32Array",
  "Float64Array",
  "Int16Array",
  "Int32Array",
  "Int8Array",
  "Uint16Array",
  "Uint32Array",
  "Uint8Array",
  "Uint8ClampedArray",
]);

const OWN = { enumerable: true, configurable: true, writable: true };
