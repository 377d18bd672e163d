/** Objects as programs see them: the class, the namespace of a class, ids and stubs. */

/** A class of objects: it extends `DurableObject`, or a binding names it. */
export interface ObjectClass {
  readonly name: string;
  readonly prototype: object;
  new (context: never, env: never): object;
}

export interface ObjectId {
  /** Undefined for an id that was made from a string or is unique. */
  readonly name: string | undefined;
  readonly jurisdiction?: string;
  /** 64 hexadecimal digits. */
  toString(): string;
  equals(other: ObjectId): boolean;
}

export interface NewIdOptions {
  readonly jurisdiction?: string;
}

export interface GetOptions {
  readonly locationHint?: string;
  /** What the object receives as `ctx.props`. */
  readonly props?: unknown;
}

/** Calls an object: `fetch`, `id`, `name`, and every public method of its class. */
export interface ObjectStub {
  readonly id: ObjectId;
  readonly name: string | undefined;
  fetch(input: Request | URL | string, init?: RequestInit): Promise<Response>;
  readonly [member: string]: unknown;
}

export interface ObjectNamespace {
  newUniqueId(options?: NewIdOptions): ObjectId;
  idFromName(name: string): ObjectId;
  idFromString(hex: string): ObjectId;
  get(id: ObjectId, options?: GetOptions): ObjectStub;
  getByName(name: string, options?: GetOptions): ObjectStub;
  jurisdiction(name: string): ObjectNamespace;
}
