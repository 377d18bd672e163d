/**
 * Connections, bodies and deliveries may take longer than in production: a test that does not set their limits does not fail on a machine that
 * is short of time, or paused for a minute.
 */
import type { ConfigFileInput } from "../../packages/signalbox/src/config/index.ts";

/** Set in one project of the test runner. */
const ENGINE = process.env["SIGNALBOX_TEST_ENGINE"] === "node" ? { engine: "node" as const } : {};
const PATIENCE_MS = 600_000;

/** Twice the default, which `test/chaos` uses: starting a node on a busy machine can take longer than that. */
export const MORTAL = { deadAfterMs: 5000 };
/** A node that is not declared dead while a test runs. */
export const IMMORTAL = { deadAfterMs: PATIENCE_MS };

export function patiently(file: ConfigFileInput): ConfigFileInput {
  return {
    ...file,
    listener: {
      ...ENGINE,
      headerTimeoutMs: PATIENCE_MS,
      bodyTimeoutMs: PATIENCE_MS,
      idleTimeoutMs: PATIENCE_MS,
      ...file.listener,
    },
    webhooks: { bodyTimeoutMs: PATIENCE_MS, answerWithinMs: PATIENCE_MS, ...file.webhooks },
    // A server whose PostgreSQL is restarted answers from memory, however long that takes.
    cluster: { maxStaleMs: PATIENCE_MS, ...file.cluster },
  };
}
