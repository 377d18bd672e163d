/**
 * Bookmarks of an object's past, as text: the point, the restoration that is to be undone (0 for none), the time in seconds, and what the object is known by. Sorted as text
 * they are sorted by point.
 */
import { hash } from "node:crypto";
import { type InstanceRef, keyOf } from "../instance/instance-ref.ts";

export interface Bookmark {
  readonly point: number;
  /** The bookmark is of the content before this restoration; 0: it is of the point. */
  readonly restoration: number;
}

const FORM = /^([0-9a-f]{8})-([0-9a-f]{8})-[0-9a-f]{8}-([0-9a-f]{32})$/;

export function toBookmark(ref: InstanceRef, { point, restoration }: Bookmark, at: number): string {
  return [hex(point), hex(restoration), hex(Math.floor(at / 1000)), ownerOf(ref)].join("-");
}

/** Throws if the text is not a bookmark, or one of another object. */
export function parseBookmark(ref: InstanceRef, text: string): Bookmark {
  const [, point = "", restoration = "", owner = ""] = FORM.exec(text) ?? [];
  if (owner === "") throw new Error(`"${text}" is not a bookmark.`);
  if (owner !== ownerOf(ref)) throw new Error("The bookmark belongs to another object.");
  return { point: Number.parseInt(point, 16), restoration: Number.parseInt(restoration, 16) };
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}

function ownerOf(ref: InstanceRef): string {
  return hash("sha256", keyOf(ref)).slice(0, 32);
}
