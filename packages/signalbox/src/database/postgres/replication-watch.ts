/**
 * Notices a commit that did not wait for its synchronous standby. PostgreSQL reports success if that wait is cancelled, with a warning: the
 * transaction is visible on the primary, and is lost if the standby replaces it.
 */
import type { PoolClient } from "pg";

/** warning, and admin_shutdown: the wait for a standby was cancelled. The texts depend on the language of the server. */
const CANCELLED_WAITS: ReadonlySet<string | undefined> = new Set(["01000", "57P01"]);

export function watchReplication(client: PoolClient): { isConfirmed(): boolean; end(): void } {
  let isConfirmed = true;
  const onNotice = ({ code }: { code?: string | undefined }) => {
    if (CANCELLED_WAITS.has(code)) isConfirmed = false;
  };
  client.on("notice", onNotice);
  return {
    isConfirmed: () => isConfirmed,
    end: () => client.off("notice", onNotice),
  };
}
