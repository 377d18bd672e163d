/** Reading of untrusted JSON. Every function takes what a parser returned and throws `InvalidRequestError` with the path. */
import { InvalidRequestError } from "./errors.ts";

export type Json = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** For responses, which are read leniently: anything else counts as empty. */
export function recordOf(value: unknown): Json {
  return isRecord(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** A token count: a finite number that is not negative, else 0. */
export function countOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

export function numberOrNull(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export function requireRecord(value: unknown, path: string): Json {
  if (isRecord(value)) return value;
  throw new InvalidRequestError(path, `${path} must be an object`);
}

export function requireList(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value as readonly unknown[];
  throw new InvalidRequestError(path, `${path} must be an array`);
}

export function requireText(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  throw new InvalidRequestError(path, `${path} must be a string`);
}

/** A name or an id: text that is not empty. */
export function requireName(value: unknown, path: string): string {
  const text = requireText(value, path);
  if (text !== "") return text;
  throw new InvalidRequestError(path, `${path} must not be empty`);
}

export function optionalText(value: unknown, path: string): string | null {
  return value == null ? null : requireText(value, path);
}

export function optionalNumber(value: unknown, path: string): number | null {
  if (value == null) return null;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new InvalidRequestError(path, `${path} must be a number`);
}

export function optionalFlag(value: unknown, path: string): boolean | null {
  if (value == null) return null;
  if (typeof value === "boolean") return value;
  throw new InvalidRequestError(path, `${path} must be true or false`);
}

export function optionalRecord(value: unknown, path: string): Json | null {
  return value == null ? null : requireRecord(value, path);
}

/** Parses text that a model or a client wrote; undefined if it is not JSON. */
export function tryParse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
