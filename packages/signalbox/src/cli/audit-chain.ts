/**
 * Recomputes the chain of the audit log from its export. The check runs on the caller's side, so that it does not depend on the server that it
 * checks. A person who can write to the database can also recompute all hashes: only a hash that was noted elsewhere shows that.
 */
import { createHash } from "node:crypto";

export interface ChainReport {
  readonly entries: number;
  readonly first: number | null;
  readonly last: number | null;
  /** Of the newest entry. */
  readonly hash: string | null;
  /** The first deviation; null if there is none. */
  readonly problem: string | null;
}

const HASH_MEMBER = ',"hash":"';

export async function checkChain(
  lines: AsyncIterable<string> | Iterable<string>,
  noted: string | undefined,
): Promise<ChainReport> {
  let entries = 0;
  let first: number | null = null;
  let last: number | null = null;
  let hash: string | null = null;
  let hasNoted = noted === undefined;
  const report = (problem: string | null): ChainReport => ({ entries, first, last, hash, problem });
  for await (const line of lines) {
    if (line === "") continue;
    const entry = parse(line);
    if (entry === null) return report(`after entry ${last ?? 0}: not an entry of an audit log`);
    const { seq, previous_hash: previousHash, hash: ownHash } = entry;
    if (hash !== null && seq !== (last ?? 0) + 1) return report(`entry ${(last ?? 0) + 1} is missing`);
    if (hash !== null && previousHash !== hash) return report(`entry ${seq} does not follow entry ${last}`);
    if (hash === null && seq === 1 && /[^0]/.test(previousHash)) return report("entry 1 is not the first");
    const text = `${line.slice(0, line.lastIndexOf(HASH_MEMBER))}}`;
    if (createHash("sha256").update(text).digest("hex") !== ownHash)
      return report(`entry ${seq} was changed`);
    first ??= seq;
    last = seq;
    hash = ownHash;
    hasNoted ||= ownHash === noted;
    entries += 1;
  }
  return report(
    hasNoted ? null : `no entry has the hash ${noted}: entries were replaced, or it was deleted by retention`,
  );
}

function parse(line: string): { seq: number; previous_hash: string; hash: string } | null {
  try {
    const value = JSON.parse(line) as Record<string, unknown>;
    const { seq, previous_hash: previousHash, hash } = value;
    if (typeof seq !== "number" || typeof previousHash !== "string" || typeof hash !== "string") return null;
    return { seq, previous_hash: previousHash, hash };
  } catch {
    return null;
  }
}
