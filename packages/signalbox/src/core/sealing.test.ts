import { expect, it } from "vitest";
import { Sealing } from "./sealing.ts";
import { Secret } from "./secret.ts";

const OLD = new Secret("an old key of thirty-two characters");
const NEW = new Secret("a new key of at least 32 characters");

it("decrypts with the same context only", () => {
  const sealing = new Sealing(NEW);
  for (const text of ["", "Bearer sk-1", "ünïcödé ✓", "x".repeat(9000)]) {
    const sealed = sealing.seal(text, "provider 1");
    expect(sealing.open(sealed, "provider 1")).toEqual({ text, isCurrentKey: true });
    expect(sealing.open(sealed, "provider 2")).toBeNull();
  }
});

it("produces a different ciphertext each time, without plaintext in it", () => {
  const sealing = new Sealing(NEW);
  const all = Array.from({ length: 50 }, () => sealing.seal("sk-very-secret", "c"));
  expect(new Set(all).size).toBe(50);
  for (const sealed of all) {
    const body = Buffer.from(sealed.split(".")[2] ?? "", "base64url").toString("latin1");
    expect(`${sealed} ${body}`).not.toContain("secret");
  }
});

it("decrypts with older keys and reports it, and with no other key", () => {
  const sealed = new Sealing(OLD).seal("text", "c");
  expect(new Sealing(NEW, OLD).open(sealed, "c")).toEqual({ text: "text", isCurrentKey: false });
  expect(new Sealing(NEW).open(sealed, "c")).toBeNull();
});

it("returns null for changed or malformed text", () => {
  const sealing = new Sealing(NEW);
  const sealed = sealing.seal("text", "c");
  const [version = "", id = "", body = ""] = sealed.split(".");
  const bytes = Buffer.from(body, "base64url");
  for (let i = 0; i < bytes.length; i++) {
    const changed = Buffer.from(bytes);
    changed[i] = (changed[i] ?? 0) ^ 1;
    expect(sealing.open(`${version}.${id}.${changed.toString("base64url")}`, "c")).toBeNull();
  }
  for (const text of [
    "",
    "Bearer sk-1",
    `v1.${id}.`,
    `v1.${id}.AAAA`,
    `v2.${id}.${body}`,
    sealed.slice(0, -9),
  ]) {
    expect(sealing.open(text, "c")).toBeNull();
  }
});
