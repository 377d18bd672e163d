/** The chain of hashes that the agent writes and the oracle computes again. */
import { createHash } from "node:crypto";

export const START_HASH = "start";

export const nextHash = (previous: string, id: string): string =>
  createHash("sha256").update(`${previous} ${id}`).digest("base64url").slice(0, 16);
