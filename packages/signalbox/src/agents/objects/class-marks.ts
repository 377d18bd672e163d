/** Marks on the prototypes of the base classes of `cloudflare:workers`, under registered symbols: see `workers-module.ts`. */

export const OBJECT = Symbol.for("signalbox.object");
export const RPC_TARGET = Symbol.for("signalbox.rpc-target");
export const ENTRYPOINT = Symbol.for("signalbox.entrypoint");
export const WORKFLOW = Symbol.for("signalbox.workflow");

/** The kind of a value that a worker's module exports. */
export type ExportKind = "object" | "entrypoint" | "workflow" | "other";

export function exportKind(value: unknown): ExportKind {
  if (typeof value !== "function") return "other";
  const prototype: unknown = value.prototype;
  if (typeof prototype !== "object" || prototype === null) return "other";
  if (OBJECT in prototype) return "object";
  if (ENTRYPOINT in prototype) return "entrypoint";
  return WORKFLOW in prototype ? "workflow" : "other";
}
