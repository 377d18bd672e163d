/**
 * Parts of the dashboard that are loaded when they are first shown.
 *
 * Invariants:
 * 1. A part that cannot be loaded because the service is away is loaded when the service is back; until then its place shows the fallback.
 * 2. A part that the service does not have, because an upgrade changed the names of the files, is an error. A part that belongs to an address is
 *    then loaded by a reload, once for each entry of the history: the user has just left the page before, so no input is lost.
 * See packages/dashboard/README.md.
 */
import { type ComponentType, lazy, type LazyExoticComponent } from "react";
import { checkConnection, reconnected, watchRequest } from "./connection.ts";

/** The service answers, but not with the file of the part. */
export class PartMissingError extends Error {
  override name = "PartMissingError";
}

/** A component of a page: `lazyPart(async () => (await import("./tags-page.tsx")).TagsPage)`. */
export function lazyPart<Props = object>(
  load: () => Promise<ComponentType<Props>>,
): LazyExoticComponent<ComponentType<Props>> {
  return lazy(async () => {
    try {
      return { default: await loadPart(load) };
    } catch (error) {
      if (!(error instanceof PartMissingError) || !reloadOnce()) throw error;
      // The document is about to be replaced.
      return new Promise(() => undefined);
    }
  });
}

/** Rejects with a `PartMissingError` if the service does not have the part. */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  let failures = 0;
  for (;;) {
    try {
      return await watchRequest(load());
    } catch (error) {
      // Browsers do not tell a missing file from a lost connection. The second try is for a connection that was lost for a moment.
      if (!(await checkConnection())) await reconnected();
      else if (++failures > 1)
        throw new PartMissingError("The server does not have this page.", { cause: error });
    }
  }
}

/** The state of a history entry survives the reload, so that a file that stays missing does not cause another one. */
function reloadOnce(): boolean {
  const state = history.state as { readonly isReloaded?: boolean } | null;
  if (state?.isReloaded === true) return false;
  history.replaceState({ isReloaded: true }, "");
  location.reload();
  return true;
}
